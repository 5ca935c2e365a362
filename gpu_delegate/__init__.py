"""texelflow's engine: a .tflite model goes in, a program of OpenGL compute dispatches comes out."""
