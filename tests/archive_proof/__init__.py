"""Clips go in; an archive of them is made on a real Ray cluster that is damaged on purpose, and judged."""
