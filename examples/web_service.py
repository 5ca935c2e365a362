"""A web service that cuts people out: a picture is posted to /cutout, and a transparent PNG comes back.

    pip install fastapi uvicorn
    uvicorn --app-dir examples web_service:app
    curl --data-binary @people.jpg http://127.0.0.1:8000/cutout > person.png

Pictures are decoded and encoded in as many threads as there are requests; what draws is one, and takes them in turn.
"""

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import cv2
import numpy as np
from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.concurrency import run_in_threadpool

import texelflow

MOST_BYTES = 32 << 20

turn = threading.Lock()  # a picture is made between reset() and the next one's


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Compile once, before the first request; free it with the last."""
    with texelflow.Pipeline(effect="cutout", model="selfie") as app.state.pipeline:
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/cutout", response_class=Response)
async def cutout(request: Request) -> Response:
    """The people in the picture that is the body, as a PNG of the same size."""
    data = bytearray()
    async for part in request.stream():
        data += part
        if len(data) > MOST_BYTES:
            raise HTTPException(413, f"more than {MOST_BYTES >> 20} MiB")
    png = await run_in_threadpool(make, app.state.pipeline, bytes(data))  # others are answered meanwhile
    return Response(png, media_type="image/png")


def make(pipeline: texelflow.Pipeline, data: bytes) -> bytes:
    """PNG of a picture in any format that OpenCV reads."""
    try:
        bgr = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR) if data else None
    except cv2.error:  # it is too large
        bgr = None
    if bgr is None:
        raise HTTPException(415, "the body is no picture that is read here")
    try:
        with turn:
            pipeline.reset()  # it has nothing to do with the one before
            rgba = pipeline(cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB))
    except texelflow.UsageError as error:
        raise HTTPException(422, str(error)) from error
    return cv2.imencode(".png", cv2.cvtColor(rgba, cv2.COLOR_RGBA2BGRA))[1].tobytes()
