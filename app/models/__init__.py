"""Models by name or path: the catalogue, where they come from, and what their numbers mean."""
