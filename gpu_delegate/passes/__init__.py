"""Graph passes: each returns a graph that computes the same, and easier or faster; `pipeline` has their order."""
