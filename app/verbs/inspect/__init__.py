"""`texelflow inspect`: what becomes of a model, as values, tables and drawings."""
