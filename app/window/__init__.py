"""The window on the screen: opening it, its keys and inputs, and showing pictures in it."""
