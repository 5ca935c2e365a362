"""The one loop of live and replay: frames of a source run through an ordered list of stages to a window and outputs."""
