"""A camera, a stream, a clip or a test pattern goes in; its newest picture and its state come out."""
