"""`texelflow archive`: segments thousands of recordings, with workers on this machine or on many (Ray)."""
