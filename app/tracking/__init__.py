"""Follows what was found from frame to frame: detectors, regions, landmarks, filters."""
