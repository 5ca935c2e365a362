"""A model in float64, with NumPy alone: how far TensorFlow Lite's runtimes and ours are from what its file says.

A second opinion, so it shares nothing with what it judges: it imports neither ops nor passes, and says each op anew.
"""
