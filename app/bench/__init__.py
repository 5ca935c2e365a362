"""What measures the program: times, quality of masks, Python's share; a benchmark a file."""
