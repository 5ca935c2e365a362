"""Recordings go in, each or all of their frames in order or as a person watches them come out segmented."""
