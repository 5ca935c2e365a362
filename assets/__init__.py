"""The demo clip, its mattes and a background, read as package data with importlib.resources; made by make_clip.py."""
