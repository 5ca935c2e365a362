"""All that the program does on a GPU, as a report that can be attached to an issue."""
