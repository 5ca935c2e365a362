"""Recordings go in; every frame in order, or those that a window plays, come out segmented."""
