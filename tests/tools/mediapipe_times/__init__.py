"""Times how long faces and hands of two people take, in turn with MediaPipe's own solutions."""
