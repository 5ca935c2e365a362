"""What live and replay write or show to others: videos, PNG files, a virtual camera, logs and traces.

Where things are added:

    an output   a sink as in file_sinks.py, a method in frame_outputs.py
    a format    what its sink reads in picture_readers.py, where it is not RGBA, I420, NV12 or gray
"""
