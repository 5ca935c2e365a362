"""A network's masks made steady and fitted to the picture's edges."""
