"""Random models, from seeds."""
