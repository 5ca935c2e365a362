"""Holds what is found in pictures and drawn clips against MediaPipe's own solutions, in the same run."""
