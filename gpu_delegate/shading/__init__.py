"""Fragment shaders read into a tree: what targets without a compiler of GLSL make code of."""
