"""The path of a frame: RGBA in RAM to a mask and a picture on the device, stage by stage, on OpenGL or the CPU."""
