"""What tests use to run the real thing (screens, cameras, streams, contexts), and second implementations in NumPy."""
