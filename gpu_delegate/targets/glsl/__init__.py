"""Kernels and whole models as GLSL; nothing here calls OpenGL."""
