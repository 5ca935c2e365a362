"""One file per family of ops: what it accepts, what it costs, and how its GLSL is emitted."""
