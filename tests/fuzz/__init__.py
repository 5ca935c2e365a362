"""Damaged and hostile inputs by the thousand, each in a child process: seeds go in, counts come out."""
