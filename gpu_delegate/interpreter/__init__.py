"""An interpreter of our own with the interface of TensorFlow Lite's, and the ways of running a model that it has."""
