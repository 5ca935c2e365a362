"""Settings: one table, from which command-line options, the config file and the panel are made."""
