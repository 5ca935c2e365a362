"""The verbs of the command line, a file or a folder each, and what several of them print."""
