"""Pictures and masks of frames go in; videos, PNG files, a virtual camera, logs and traces come out, for all verbs.

Where things are added:

    an output   a sink as in file_sinks.py, a method in outputs.py
    a format    what its sink reads in readers.py, where it is not RGBA, I420, NV12 or gray
"""
