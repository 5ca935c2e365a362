"""A camera, a stream, a clip or a test pattern goes in; its newest picture, and in what state it is, comes out."""
