"""The folder in which results are made before they are placed."""
