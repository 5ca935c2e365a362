"""Models by name or path: the catalogue, where its files come from, and what a model's numbers mean."""
