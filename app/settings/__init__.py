"""Command-line options and a file go in; valid settings come out. Options, file and panel come from one table."""
