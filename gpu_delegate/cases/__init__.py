"""Small uses of every op, at odd sizes: what the engine is checked and timed by, op by op."""
