"""GLSL sources as package data; read with importlib.resources, never imported for code."""
