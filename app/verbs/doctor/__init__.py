"""`texelflow doctor`: what this machine has and lacks."""
