"""`texelflow replay`: segments recordings and pictures, every frame in order, or plays them in a window."""
