"""The path of a frame: RGBA in RAM to a mask and a picture on the device, stage by stage, on OpenGL or the CPU.

Folders in their order, each of which uses those before it: stages, textures, looks, inference, refinement, drawing,
backend_choice.
"""
