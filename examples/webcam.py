"""Shows a webcam, a stream or a recording with the background blurred: webcam.py [NUMBER|FILE|ADDRESS]; Esc ends."""

import sys

import cv2

import texelflow

name = sys.argv[1] if len(sys.argv) > 1 else "0"
try:
    for picture in texelflow.video(int(name) if name.isdecimal() else name, effect="blur"):
        cv2.imshow("webcam", cv2.cvtColor(picture, cv2.COLOR_RGB2BGR))
        if cv2.pollKey() == 27:
            break
except texelflow.TexelflowError as error:
    sys.exit(f"{error}; usage: webcam.py [NUMBER|FILE|ADDRESS]")
