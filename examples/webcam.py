"""Shows a webcam, or any video that OpenCV opens, with the background darkened: webcam.py [NUMBER|FILE]; Esc ends."""

import sys

import cv2

import texelflow

name = sys.argv[1] if len(sys.argv) > 1 else "0"
camera = cv2.VideoCapture(int(name) if name.isdecimal() else name)
if not camera.isOpened():
    sys.exit(f"{name}: no camera or video; usage: webcam.py [NUMBER|FILE]")
with texelflow.Segmenter("selfie") as segment:
    while cv2.pollKey() != 27:
        there, bgr = camera.read()
        if not there:
            break
        mask = segment(cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB))
        cv2.imshow("webcam", (bgr * (0.2 + 0.8 * mask[..., None])).astype("uint8"))
