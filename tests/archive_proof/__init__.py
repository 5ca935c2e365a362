"""The proof of `texelflow archive`: a real Ray cluster is damaged on purpose while it works, and results are judged."""
