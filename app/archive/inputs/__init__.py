"""Names on the command line become inputs, and inputs become files of this machine."""
