"""One file per family of ops: a node goes in, the GLSL of its arithmetic comes out."""
