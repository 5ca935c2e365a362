"""What a person may choose: as flags, in a file, in a panel of the window; all made from one list of settings."""
