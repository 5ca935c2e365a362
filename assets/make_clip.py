"""Makes the demo clip people.mp4 and each frame's true matte, from two public-domain portraits and their mattes.

    python assets/make_clip.py [--seed N] [--out clip.mp4] [--mattes DIR] [--stills]

Needs scikit-image and matplotlib for the portraits that they ship; the product itself needs neither. `--stills` first
makes the two mattes and background.jpg anew. The same seed on one machine gives the same bytes.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

try:
    import av
    import cv2
    import numpy as np
    from numpy.typing import NDArray
except ImportError as missing:
    sys.exit(f"{missing.name} is missing: pip install av numpy opencv-python scikit-image matplotlib")

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]

HERE = Path(__file__).parent
WIDTH, HEIGHT, FPS, FRAMES = 640, 480, 30, 240
PHOTOS = {
    "astronaut": ("skimage", "scikit-image", "data/astronaut.png"),
    "hopper": ("matplotlib", "matplotlib", "mpl-data/sample_data/grace_hopper.jpg"),
}

# ------------------------------------------------------------------------------------------- photo and outline to matte

MATTE_UPSCALE = 2  # cutting at twice the photo's resolution leaves edges that are one to two pixels soft
BAND_PX = 3.0  # how far GrabCut may move the outline drawn by hand


@cache
def read_photo(name: str) -> Bytes:
    """Returns portrait `name` as RGB (H, W, 3) from the package that ships it; exits with one line if it is missing."""
    module, package, path = PHOTOS[name]
    spec = find_spec(module)
    photo = cv2.imread(str(Path(spec.origin).parent / path)) if spec and spec.origin else None
    if photo is None:
        sys.exit(f"{path} of {package} is missing: pip install av numpy opencv-python scikit-image matplotlib")
    return np.asarray(photo[..., ::-1], np.uint8)


@cache
def read_matte(name: str) -> Floats:
    """Returns the stored matte of portrait `name` (H, W), 0 where there is background, 1 inside the figure."""
    matte = cv2.imread(str(HERE / f"{name}_matte.png"), cv2.IMREAD_GRAYSCALE)
    if matte is None:
        sys.exit(f"{HERE / name}_matte.png is missing: make it with --stills")
    return np.asarray(matte, np.float32) / np.float32(255)


def cut_matte(photo: Bytes, outline_xy: list[list[float]], trusted_boxes: list[list[int]]) -> Floats:
    """Returns the matte (H, W) in 0..1 of the figure inside the hand-drawn `outline_xy` (pixels of the photo).

    GrabCut decides in a narrow band around the outline, except in `trusted_boxes` (x0, y0, x1, y1): there the figure
    is as dark as what stands behind it, and the drawn line holds.
    """
    large = cv2.resize(photo, None, fx=MATTE_UPSCALE, fy=MATTE_UPSCALE, interpolation=cv2.INTER_CUBIC)
    drawn = np.zeros(large.shape[:2], np.uint8)
    cv2.fillPoly(drawn, [np.round(np.array(outline_xy) * MATTE_UPSCALE * 16).astype(np.int32)], (1,), shift=4)
    depth = cv2.distanceTransform(drawn, cv2.DIST_L2, 5) - cv2.distanceTransform(1 - drawn, cv2.DIST_L2, 5)

    labels = np.where(drawn == 1, cv2.GC_PR_FGD, cv2.GC_PR_BGD).astype(np.uint8)
    labels[depth > BAND_PX * MATTE_UPSCALE] = cv2.GC_FGD
    labels[depth < -BAND_PX * MATTE_UPSCALE] = cv2.GC_BGD
    for x0, y0, x1, y1 in np.array(trusted_boxes) * MATTE_UPSCALE:
        labels[y0:y1, x0:x1] = np.where(drawn[y0:y1, x0:x1] == 1, cv2.GC_FGD, cv2.GC_BGD)
    cv2.setRNGSeed(0)
    cv2.grabCut(large, labels, (0, 0, 0, 0), np.zeros((1, 65)), np.zeros((1, 65)), 4, cv2.GC_INIT_WITH_MASK)

    figure = np.isin(labels, (cv2.GC_FGD, cv2.GC_PR_FGD)).astype(np.float32)
    smooth = cv2.GaussianBlur(figure, (0, 0), 0.8 * MATTE_UPSCALE)
    height, width = photo.shape[:2]
    return np.asarray(cv2.resize(smooth, (width, height), interpolation=cv2.INTER_AREA), np.float32)


# ---------------------------------------------------------------------------------------------------- figures and poses


@dataclass(frozen=True)
class Figure:
    """A portrait and its path through the clip.

    `cut_xy` are the ends of the stretches where the photo's own edge cuts the figure; they never come into view.
    `keys` are (frame, center x, sink, scale, tilt): pixels of the frame, pixels by which the figure stands lower than
    its cut demands, size against the photo, degrees counter-clockwise.
    """

    name: str
    pivot_xy: tuple[float, float]
    cut_xy: tuple[tuple[float, float], ...]
    keys: tuple[tuple[float, float, float, float, float], ...]

    def transform(self, frame: int, seed: int) -> Floats:
        """Returns the 2x3 matrix that takes the photo's pixels to the pixels of frame `frame`."""
        x, sink, scale, tilt = self._pose(frame)
        phase = np.random.default_rng((seed, len(self.name))).uniform(0, 2 * np.pi)
        tilt += 1.5 * np.sin(0.15 * frame + phase)
        matrix = np.asarray(cv2.getRotationMatrix2D(self.pivot_xy, tilt, scale), np.float32)
        matrix[0, 2] += x - self.pivot_xy[0]
        cut_y = np.array(self.cut_xy, np.float32) @ matrix[1, :2] + matrix[1, 2]
        matrix[1, 2] += HEIGHT + 2 + sink - cut_y.min()
        return matrix

    def _pose(self, frame: int) -> NDArray[np.float64]:
        keys = np.array(self.keys, np.float64)
        at = float(np.clip(frame, keys[0, 0], keys[-1, 0]))
        i = min(int(np.searchsorted(keys[:, 0], at, side="right")), len(keys) - 1)
        before, after = keys[i - 1], keys[i]
        part = (at - before[0]) / (after[0] - before[0])
        return np.asarray(before[1:] + (after - before)[1:] * part * part * (3 - 2 * part), np.float64)


FIGURES = (  # painted in this order
    Figure(
        name="astronaut",
        pivot_xy=(230, 330),
        cut_xy=((30, 511), (511, 486)),
        keys=(
            (10, -260, 30, 0.80, 8),
            (38, 250, 30, 0.85, -4),
            (70, 350, 20, 0.95, 5),
            (98, 330, 60, 1.10, -5),
            (128, 190, 20, 0.85, 4),
            (156, -260, 40, 0.90, 12),
            (157, 430, 700, 1.00, -14),
            (212, 430, 700, 1.00, -14),
            (228, 400, 40, 0.95, 4),
            (240, 380, 30, 0.95, 0),
        ),
    ),
    Figure(
        name="hopper",
        pivot_xy=(262, 330),
        cut_xy=((511, 440), (10, 599)),
        keys=(
            (86, 920, 20, 0.80, -10),
            (114, 500, 10, 0.85, 5),
            (140, 440, 0, 0.90, -4),
            (168, 320, 0, 1.15, 3),
            (186, 300, 60, 1.35, -6),
            (198, 310, 20, 1.10, 6),
            (210, 310, 700, 1.05, 14),
        ),
    ),
)


@cache
def read_cutout(name: str) -> tuple[Floats, Floats]:
    """Returns portrait `name` as RGB times matte (H, W, 3) and its matte (H, W).

    Soft edge pixels take the color of the nearest pixel well inside, so that the old background leaves no fringe.
    """
    photo, matte = read_photo(name), read_matte(name)
    if photo.shape[:2] != matte.shape:
        sys.exit(
            f"{name}: the photo is {photo.shape[1::-1]}, its matte {matte.shape[::-1]}: another photo than was cut"
        )
    inside = matte > 0.97
    _, nearest = cv2.distanceTransformWithLabels(
        (~inside).astype(np.uint8), cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL
    )
    colors = np.zeros((int(nearest.max()) + 1, 3), np.float32)
    colors[nearest[inside]] = photo[inside]
    return np.asarray(colors[nearest] * matte[..., None], np.float32), matte


def place(image: Floats, matrix: Floats) -> Floats:
    """Returns `image` moved into a frame (480, 640[, 3]) by the 2x3 `matrix`; zero outside it."""
    return np.asarray(cv2.warpAffine(image, matrix, (WIDTH, HEIGHT), flags=cv2.INTER_LINEAR), np.float32)


def true_matte(frame: int, seed: int = 0) -> Floats:
    """Returns the matte (480, 640) in 0..1 of all figures in frame `frame`; needs the stored mattes, not the photos."""
    clear = np.ones((HEIGHT, WIDTH), np.float32)
    for figure in FIGURES:
        clear *= 1 - place(read_matte(figure.name), figure.transform(frame, seed))
    return 1 - clear


# ------------------------------------------------------------------------------------------------- background and light

CHANGES_S = (2.6, 5.3)  # when the background changes, within half a second


def background(seconds: float, seed: int) -> Floats:
    """Returns the background (480, 640, 3) in 0..255 at a time of the clip: one of three scenes, or a wipe."""
    scenes = (_discs, _stripes, _clouds)
    picture = scenes[0](seconds, seed)
    across = np.linspace(0, 1, WIDTH, dtype=np.float32)[None, :, None]
    for start, scene in zip(CHANGES_S, scenes[1:], strict=True):
        done = (seconds - start) / 0.5
        if done > 0:
            shown = np.clip((done * 1.3 - across) / 0.3, 0, 1)
            picture = picture + (scene(seconds, seed) - picture) * shown
    return picture


def _grid(width: int = WIDTH, height: int = HEIGHT) -> tuple[Floats, Floats]:
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    return x, y


def _discs(seconds: float, seed: int) -> Floats:
    """Returns lights out of focus, drifting before an evening wall."""
    rng = np.random.default_rng((seed, 1))
    x, y = _grid()
    picture = np.stack([58 + y / 9, 84 + y / 9, 128 + y / 14], axis=-1)
    for _ in range(14):
        x0, y0, radius = rng.uniform(0, WIDTH), rng.uniform(0, HEIGHT), rng.uniform(18, 55)
        speed_x, speed_y = rng.uniform(-40, 40, 2)
        distance = np.hypot(x - x0 - speed_x * seconds, y - y0 - speed_y * seconds)
        glow = np.clip((radius - distance) / 12, 0, 1) * rng.uniform(0.2, 0.5)
        picture += glow[..., None] * np.array([90, rng.uniform(40, 80), rng.uniform(-40, 40)])
    return np.asarray(picture, np.float32)


def _stripes(seconds: float, seed: int) -> Floats:
    """Returns slanted stripes that wander across a wallpaper."""
    turn = np.random.default_rng((seed, 2)).uniform(0.3, 0.6)
    x, y = _grid()
    along = x * np.cos(turn) + y * np.sin(turn) - 45 * seconds
    band = np.clip(4 * np.sin(along / 24), -1, 1) * (0.4 + 0.6 * y / HEIGHT)
    shade = 8 * np.sin(y / 90 + seconds)
    return np.stack([176 + 16 * band + shade, 172 + 4 * band + shade, 158 - 12 * band + shade], axis=-1)


def _clouds(seconds: float, seed: int) -> Floats:
    """Returns a drifting cloudy texture in four octaves."""
    rng = np.random.default_rng((seed, 3))
    cloud = np.zeros((HEIGHT, WIDTH), np.float32)
    for octave in range(4):
        cells = rng.standard_normal((6 << octave, 10 << octave)).astype(np.float32)
        step = 96 / 2**octave
        drift = np.array([[step, 0, -30 * seconds], [0, step, -9 * seconds]], np.float32)
        moved = cv2.warpAffine(cells, drift, (WIDTH, HEIGHT), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_WRAP)
        cloud += moved / 2**octave
    return np.asarray(np.array([104, 130, 134]) + cloud[..., None] * np.array([26, 22, 16]), np.float32)


def light(seconds: float) -> Floats:
    """Returns the light (480, 640, 3), a factor: it swells, shifts sideways, turns warm; at 3.9 s a lamp fails."""
    lamp = 1 - 0.45 * np.clip((seconds - 3.9) / 0.1, 0, 1) * np.clip((4.8 - seconds) / 0.4, 0, 1)
    level = lamp * (1 + 0.12 * np.sin(2 * np.pi * seconds / 5))
    side = 1 + 0.3 * np.sin(2 * np.pi * seconds / 4) * np.linspace(-0.5, 0.5, WIDTH)
    warmth = 0.07 * np.sin(2 * np.pi * seconds / 6)
    color = np.array([1 + warmth, 1, 1 - warmth])
    return np.broadcast_to(level * side[None, :, None] * color, (HEIGHT, WIDTH, 3)).astype(np.float32)


# ------------------------------------------------------------------------------------------------------ frames and file

NOISE = 2.5  # standard deviation, of 255


def render_frame(frame: int, seed: int = 0) -> tuple[Bytes, Floats]:
    """Returns frame `frame` of the clip as RGB (480, 640, 3) and its true matte (480, 640) in 0..1."""
    seconds = frame / FPS
    picture = background(seconds, seed)
    for figure in FIGURES:
        matrix = figure.transform(frame, seed)
        colors, matte = read_cutout(figure.name)
        picture = picture * (1 - place(matte, matrix))[..., None] + place(colors, matrix)
    rng = np.random.default_rng((seed, 4, frame))
    picture = picture * light(seconds) + NOISE * rng.standard_normal(picture.shape, np.float32)
    return np.clip(np.round(picture), 0, 255).astype(np.uint8), true_matte(frame, seed)


def render_frames(seed: int = 0) -> Iterator[tuple[Bytes, Floats]]:
    """Yields every frame of the clip in order, as `render_frame` returns it."""
    for frame in range(FRAMES):
        yield render_frame(frame, seed)


def write_clip(path: Path, seed: int, mattes: Path | None) -> None:
    """Writes the clip to `path` (H.264, BT.709, limited range, index first), true mattes as 000.png... to `mattes`."""
    with av.open(str(path), "w", format="mp4", options={"movflags": "faststart", "fflags": "bitexact"}) as file:
        # One thread: with more, equal runs give different bytes.
        options = {"preset": "slow", "crf": "22", "threads": "1"}
        stream = file.add_stream("libx264", rate=FPS, options=options)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        codec = stream.codec_context
        codec.color_range, codec.colorspace, codec.color_primaries, codec.color_trc = 1, 1, 1, 1
        for index, (rgb, matte) in enumerate(render_frames(seed)):
            picture = av.VideoFrame.from_ndarray(rgb, "rgb24").reformat(
                format="yuv420p", dst_colorspace="ITU709", dst_color_range="MPEG"
            )
            file.mux(stream.encode(picture))
            if mattes:
                write_image(mattes / f"{index:03}.png", np.round(matte * 255).astype(np.uint8))
        file.mux(stream.encode(None))


def write_image(path: Path, image: Bytes) -> None:
    """Writes gray (H, W) or RGB (H, W, 3); raises OSError where `path` cannot be written."""
    pixels = image if image.ndim == 2 else image[..., ::-1]
    if not cv2.imwrite(str(path), pixels, [cv2.IMWRITE_JPEG_QUALITY, 88]):
        raise OSError(f"no image can be written to {path}")


def dusk() -> Bytes:
    """Returns the picture for replaced backgrounds, RGB (720, 960, 3): hills before an evening sky, in five layers."""
    rng = np.random.default_rng(7)
    x, y = _grid(960, 720)
    height = np.clip(y / 520, 0, 1)[..., None]
    picture = np.array([46, 58, 110]) * (1 - height) + np.array([250, 176, 120]) * height
    sun = np.exp(-((x - 690) ** 2 + (y - 400) ** 2) / 2 / 90**2)[..., None]
    picture += sun * np.array([70, 60, 30])
    for layer in range(5):
        ridge = 390.0 + 70 * layer
        for wave in range(1, 6):
            ridge = ridge + 34 / wave * np.sin(x * wave * rng.uniform(0.004, 0.009) + rng.uniform(0, 7))
        near = layer / 4
        color = np.array([176, 122, 120]) * (1 - near) + np.array([24, 30, 48]) * near
        picture += (color - picture) * np.clip(y - ridge, 0, 1)[..., None]
    return np.asarray(np.clip(picture + rng.uniform(0, 1, picture.shape), 0, 255), np.uint8)


def write_stills() -> None:
    """Makes both mattes from photos and outlines.json, and background.jpg, beside this script."""
    outlines = json.loads((HERE / "outlines.json").read_text(encoding="utf-8"))
    for name, drawn in outlines.items():
        matte = cut_matte(read_photo(name), drawn["outline_xy"], drawn["trusted_boxes_x0y0x1y1"])
        write_image(HERE / f"{name}_matte.png", np.round(matte * 255).astype(np.uint8))
    write_image(HERE / "background.jpg", dusk())


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="noise, background and sway (default 0)")
    parser.add_argument("--out", type=Path, default=HERE / "people.mp4", metavar="FILE", help="the clip")
    parser.add_argument("--mattes", type=Path, metavar="DIR", help="also write each frame's true matte, gray PNG")
    parser.add_argument(
        "--stills", action="store_true", help="first make the portraits' mattes and background.jpg anew"
    )
    options = parser.parse_args()
    if options.seed < 0:
        parser.error("--seed must not be negative")
    try:
        if options.stills:
            write_stills()
        if options.mattes:
            options.mattes.mkdir(parents=True, exist_ok=True)
        write_clip(options.out, options.seed, options.mattes)
    except OSError as error:
        sys.exit(
            f"cannot write {error.filename or options.out}: {error.strerror or error}; give a path that can be written"
        )


if __name__ == "__main__":
    main()
