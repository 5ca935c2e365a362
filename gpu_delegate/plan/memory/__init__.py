"""When each tensor is alive and how large it is go in; its place in memory comes out."""
