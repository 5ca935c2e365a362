"""Live sources: cameras, streams, clips and a test pattern, of which the newest picture and the state can be asked."""
