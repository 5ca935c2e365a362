"""What must be drawn of frames, masks and effects, by NumPy in double precision, and a bench that draws it."""

import numpy as np
import numpy.typing as npt

from texelflow.app.frame.drawing.backdrop import Backdrop
from texelflow.app.frame.drawing.canvas import Canvas
from texelflow.app.frame.drawing.mask_edge import edged
from texelflow.app.frame.drawing.render import Compositor
from texelflow.app.frame.inference.network_output import ClassScores, PictureOutput
from texelflow.app.frame.looks.background import cover
from texelflow.app.frame.looks.looks import ChosenLook, Look
from texelflow.app.frame.textures.gl_pictures import GlPictures
from texelflow.app.frame.textures.offscreen_target import OffscreenTarget, on_opengl
from texelflow.app.frame.textures.picture_device import Target
from texelflow.app.frame.textures.readback import ReadbackRing
from texelflow.app.frame.textures.resample import MaskLayout
from texelflow.app.frame.textures.upload import FrameTextures
from texelflow.app.media.sources import VideoFrame
from texelflow.app.picture.picture import rgba_format, rgba_picture
from texelflow.app.picture.preprocess import Fit, ImageSize, Sampling
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.opengl import BufferRange

Image = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]

SMALL = (64, 48)
BACKGROUND = np.random.default_rng(7).integers(0, 256, (47, 65, 4), np.uint8)


def byte_rounding(context: Context) -> float:
    """Of a step, by how much a number may be off that becomes a byte.

    Mesa's renderer rounds to the nearest; GPUs keep to Direct3D's limit, since OpenGL has none.
    """
    return 0.5 if context.is_software else 0.6


def noise(size: ImageSize, seed: int = 0) -> Image:
    rgba = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 4), np.uint8)
    rgba[..., 3] = 255
    return rgba


def disc(size: ImageSize, radius: float) -> Floats:
    """A mask whose person is a disc in the middle, with a sharp edge."""
    y, x = np.mgrid[: size[1], : size[0]]
    return np.asarray(np.hypot(x - size[0] / 2, y - size[1] / 2) < radius, np.float32)


# The definitions, from the docstring of app/frame/drawing/blur.py


def gaussian(radius: float) -> tuple[int, Doubles]:
    """The factor, and the weights of cells as far away as three standard deviations, in either direction."""
    factor = max(3, int(radius / 4))
    variance = (radius / 2 / factor) ** 2 - 0.25
    reach = int(np.ceil(3 * np.sqrt(variance)))
    weights = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * variance))
    return factor, weights / weights.sum()


def smooth_rows(cells: Doubles, weights: Doubles) -> Doubles:
    reach = len(weights) // 2
    padded = np.pad(cells, ((reach, reach), (0, 0), (0, 0)), "edge")
    return sum((weight * padded[i : i + len(cells)] for i, weight in enumerate(weights)), np.zeros_like(cells))


def interpolate_rows(cells: Doubles, factor: float, count: int) -> Doubles:
    at = (np.arange(count) + 0.5) / factor - 0.5
    first = np.floor(at).astype(int)
    part = (at - first)[:, None, None]
    above, below = (cells[np.clip(first + i, 0, len(cells) - 1)] for i in (0, 1))
    return np.asarray(above + (below - above) * part)


def spread(behind: Doubles, person: Doubles, radius: float, most_taps: int = 4) -> Doubles:
    """What is seen of (H, W, 3) behind a person (H, W, 1), blurred: premultiplied, with the mean weight (H, W, 4)."""
    factor, weights = gaussian(radius)
    height, width, _ = behind.shape
    weighted = np.concatenate([behind, np.ones_like(person)], -1) * (1 - person) ** 3
    taps = min(most_taps, factor)
    within = [(2 * i + 1) * factor // (2 * taps) for i in range(taps)]
    rows, columns = (
        np.minimum(np.arange(-(-side // factor))[:, None] * factor + within, side - 1) for side in (height, width)
    )
    cells = weighted[rows][:, :, columns].mean((1, 3))
    for _ in range(2):
        cells = smooth_rows(cells, weights).swapaxes(0, 1)
    between = interpolate_rows(cells, factor, height).swapaxes(0, 1)
    return interpolate_rows(between, factor, width).swapaxes(0, 1)


def blurred(frame: Doubles, person: Doubles, radius: float) -> Doubles:
    """The background behind a frame (H, W, 3) with a person (H, W, 1), which the person does not spread into."""
    sums, tiny = spread(frame, person, radius), 1 / 4096
    return np.asarray((sums[..., :3] + tiny * frame) / (sums[..., 3:] + tiny))


def own_colors(frame: Doubles, person: Doubles, drawn: Doubles) -> Doubles:
    """The person's own colors in a frame (H, W, 3), as drawing/foreground.py defines them; masks are (H, W, 1)."""
    height, width, _ = frame.shape
    side, step = (max(1, round(height / count)) for count in (60, 120))
    middle = [np.minimum(np.arange(-(-extent // side)) * side + side // 2, extent - 1) for extent in (height, width)]
    colors, shares = (np.rint(values[np.ix_(*middle)]) for values in (frame, 255 * person))

    def around(weights: Doubles) -> tuple[Doubles, Doubles]:
        """The weighted mean color of 3 x 3 cells, and the mean weight."""
        padded = np.pad(np.concatenate([weights * colors, weights], -1), ((1, 1), (1, 1), (0, 0)), "edge")
        rows, columns = weights.shape[:2]
        tents = {(y, x): (2 - abs(y - 1)) * (2 - abs(x - 1)) / 16 for y, x in np.ndindex(3, 3)}
        moved = [tent * padded[y : y + rows, x : x + columns] for (y, x), tent in tents.items()]
        sums = np.sum(moved, axis=0)
        return sums[..., :3] / (sums[..., 3:] + 1e-9), sums[..., 3:]

    (front, most), (back, rest) = around((shares / 255) ** 4), around((1 - shares / 255) ** 4)
    apart = (front - back) * most * rest / (most * rest + 0.0004)
    counts = [-(-extent // step) for extent in (height, width)]
    steps = interpolate_rows(interpolate_rows(apart, side / step, counts[0]).swapaxes(0, 1), side / step, counts[1])
    places = np.ix_(*(np.arange(extent) // step for extent in (height, width)))
    return np.asarray(np.clip(frame + (1 - np.maximum(person, drawn)) * steps.swapaxes(0, 1)[places], 0, 255))


def checkered(size: ImageSize) -> Doubles:
    """Squares of two grays."""
    squares = np.add.outer(np.arange(size[1]) // 16, np.arange(size[0]) // 16) % 2
    return np.repeat(np.where(squares, 153.0, 204.0)[..., None], 3, -1)


def picture_of(look: Look, rgba: Image, mask: Floats) -> Doubles:
    """What a look makes of a frame (H, W, 4) with a mask of its size: (H, W, 4) from 0 to 255."""
    frame, height, width = rgba[..., :3].astype(np.float64), *mask.shape
    curved = np.clip(mask[..., None].astype(np.float64) - look.threshold + 0.5, 0, 1) ** look.gamma
    person = edged(curved[..., 0], look.grow, look.feather)[..., None].astype(np.float64) if look.edges_mask else curved
    turn = slice(None, None, -1 if look.mirror else 1)
    color: Doubles = np.broadcast_to(np.array(look.color, np.float64) * 255, frame.shape)
    behind = {
        "replace": cover(BACKGROUND, (width, height))[:, turn, :3].astype(np.float64),
        "color": color,
        "checker": checkered((width, height))[:, turn],
    }
    if look.effect == "blur":
        behind["blur"] = blurred(frame, person, look.radius or max(4, 0.05 * height))
    own = own_colors(frame, curved, person)
    lit = own
    if look.light_wrap and look.effect in ("replace", "color", "blur"):
        seen = frame if look.effect == "blur" else behind[look.effect]
        light = spread(seen, person, max(4, 0.04 * height), most_taps=2)
        lit = own + look.light_wrap * np.maximum(light[..., :3] - light[..., 3:] * own, 0)
    colors = {
        "tint": frame + person * 0.5 * (color - frame),
        "cutout": own,
        "none": frame,
        "mask": 255 * np.repeat(person, 3, -1),
    }
    shown = colors[look.effect] if look.effect in colors else lit * person + behind[look.effect] * (1 - person)
    alpha = 255 * person if look.effect == "cutout" else np.full_like(person, 255)
    return np.asarray(np.concatenate([shown, alpha], -1)[:, turn])


def sampled(values: Floats, back: Sampling) -> Doubles:
    """What a frame samples of a network's output (H, W, C): (h, w, C), and 0 where the network never saw it."""
    (columns, x_weights), (rows, y_weights) = back.taps()
    made = sum(values[row].astype(np.float64) * w[:, None, None] for row, w in zip(rows, y_weights, strict=True))
    made = sum(np.asarray(made)[:, column] * w[:, None] for column, w in zip(columns, x_weights, strict=True))
    return np.asarray(made * (back.y.inside()[:, None] & back.x.inside())[..., None])


# A frame and its mask on the device


class Bench:
    """What a segmenter hands on: a frame's textures, and its mask as a plain tensor in a buffer."""

    def __init__(self, context: Context, rgba: Image, mask: Floats) -> None:
        self.context, self.size = context, (rgba.shape[1], rgba.shape[0])
        self.pictures = GlPictures(context)
        self.frame = FrameTextures(context, rgba_format(self.size))
        self.frame.upload(rgba_picture(rgba))
        self.layout = MaskLayout((mask.shape[1], mask.shape[0]), stride=1)
        self._buffer = context.mgl.buffer(mask.tobytes())
        self.mask = BufferRange(self._buffer.glo, 0, mask.nbytes)
        self.picture: PictureOutput | None = None
        self.classes: ClassScores | None = None

    def read(self, target: Target) -> Image:
        """The picture in a target, (H, W, 4), its top row first."""
        ring = ReadbackRing[int](self.context, target.size[0] * target.size[1] * 4)
        ring.request_picture(0, on_opengl(target).framebuffer, target.size)
        ((_, data),) = ring.drain()
        ring.release()
        return data.reshape(target.size[1], target.size[0], 4)

    def draw(self, look: Look, fit: Fit = "stretch") -> Image:
        """One picture, by a compositor of its own."""
        target, backdrop = OffscreenTarget(self.context, self.size), self.backdrop()
        with Compositor(self.pictures, self.frame, self.layout, fit, look, backdrop) as compositor:
            compositor.draw(self.mask, target)
            picture = self.read(target)
        target.release()
        backdrop.release()
        return picture

    def backdrop(self) -> Backdrop:
        """With the picture that all definitions have."""
        backdrop = Backdrop(self.pictures, self.size)
        backdrop.show(rgba_picture(cover(BACKGROUND, self.size)))
        return backdrop

    def release(self) -> None:
        self.frame.release()
        self._buffer.release()


def drawn(context: Context, look: Look, rgba: Image, mask: Floats, fit: Fit = "stretch") -> Image:
    bench = Bench(context, rgba, mask)
    picture = bench.draw(look, fit)
    bench.release()
    return picture


class Segmented(Bench):
    """A bench with a canvas, as a pipeline has it."""

    def __init__(self, context: Context, rgba: Image, mask: Floats, look: Look) -> None:
        super().__init__(context, rgba, mask)
        self.target, self._backdrop = OffscreenTarget(context, self.size), self.backdrop()
        self.canvas = Canvas(self.pictures, self, self.target, "stretch", ChosenLook(look), backdrop=self._backdrop)
        self.frame_in_ram = VideoFrame(0, 0, 0.0, rgba_picture(rgba))

    def show(self) -> None:
        self.canvas.stage.run(self.frame_in_ram)

    def release(self) -> None:
        self.canvas.release()
        self._backdrop.release()
        self.target.release()
        super().release()
