"""texelflow's engine: compiles a .tflite model to OpenGL compute dispatches, or to machine code for the CPU."""
