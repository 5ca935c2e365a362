"""Whole frames without a GPU, beside a script with MediaPipe: `python -m tests.tools.whole_frame`."""
