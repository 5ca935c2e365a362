"""A recording in a window: the window itself, its keys, the clock that paces frames, and the loop that joins them."""
