"""Workers as processes, on this machine or on many through Ray."""
