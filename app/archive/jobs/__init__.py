"""What a run asks of its workers and what they answer: plain data that every later stage shares."""
