"""Models that tests write as real .tflite files, and what writes them."""
