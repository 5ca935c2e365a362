"""The demo clip and its mattes as package data; read with importlib.resources, never imported for code."""
