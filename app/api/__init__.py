"""texelflow: people cut out of live and recorded video on any OpenGL 4.3 GPU, and a TensorFlow Lite engine."""
