"""What happened to each input, as lines in a file that later runs read."""
