"""TensorFlow Lite on the CPU, as the reference and the fallback, and the process that it runs in."""
