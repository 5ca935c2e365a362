"""A record for each op, in the file of its family: how files encode it, and what it computes."""
