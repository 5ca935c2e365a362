"""What is made of several models and instances: shared weights, and which ops run where."""
