"""Custom ops that functions in Python compute with NumPy, between the parts of a model that run elsewhere."""
