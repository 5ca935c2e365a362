"""How long it takes from the world to the window: flashes that a camera sees."""
