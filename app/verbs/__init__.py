"""What the command line can do, a verb a file, and what they print."""
