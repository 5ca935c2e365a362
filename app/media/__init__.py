"""Media files and pipes: reads and writes recordings, pictures and sound, each frame with its time stamp."""
