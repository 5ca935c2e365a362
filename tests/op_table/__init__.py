"""Every case of the table of ops, in every way: `make op-cases`."""
