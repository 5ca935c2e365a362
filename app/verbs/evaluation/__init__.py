"""`texelflow check --data`: how well a model does its task, by each way of running it."""
