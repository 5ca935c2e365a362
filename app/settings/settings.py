"""The one table of settings of live, replay and archive, with the checks that make all values valid.

Flags, the file, its dump and the panel are made from what each field says of itself.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, get_args

from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.base.wording import meant

from ..frame.looks.effects import (
    BUILT_IN_BACKGROUNDS,
    COLOR,
    DEFAULT_BACKGROUND,
    EFFECTS,
    LEAST_GAMMA,
    LEAST_RADIUS,
    MOST_GAMMA,
    MOST_RADIUS,
    Effect,
)
from ..media.codecs import CODECS, USUAL_QUALITY, Codec
from ..models.entries import CATALOGUE, COMBINED, SEGMENTERS
from ..names import local_name
from ..picture.size import parse_size
from ..tracking.gesture_names import GESTURES
from .gesture_actions import GESTURE_ACTIONS, parse_gestures

if TYPE_CHECKING:  # help comes at once without them
    from texelflow.gpu_delegate.model.graph import Hybrid
    from texelflow.gpu_delegate.model.layout import Precision
    from texelflow.gpu_delegate.plan.memory.memory_options import MemoryMode

    from ..frame.inference.backends import CpuEngine
    from ..picture.preprocess import Fit, Preprocessing
    from ..tracking.auto_framing import FramingMode

SettingValue = bool | int | float | str | tuple[str, ...]  # several texts, where there may be more than one
SettingKind = Literal[
    "bool", "int", "float", "text", "texts", "choice", "size", "range", "point", "path", "background", "class",
    "gestures", "faces",
]  # fmt: skip
Changes = Literal["running", "reopens camera", "restart", "restart to end"]  # what it takes for another value to count
Verb = Literal["live", "replay", "archive"]
OverlayStyle = Literal["compact", "full"]
Corner = Literal["top-left", "top-right", "bottom-left", "bottom-right"]

PRIVATE_EFFECT: Effect = "blur"  # where a private session is named none
MOST_ZOOM = 4.0  # by hand
MOST_CAMERAS = 9  # side by side; more would be too small to be watched

_NO_VALUE = "none"  # what an empty default is called
_LONGEST = 4096  # letters of a text
_MOST_SIDE = 16384  # pixels: the largest texture that desktop GPUs take
_MOST_CLASSES = 1 << 16
_NUMBER = r"[-+]?(?:[0-9]{1,9}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})"
_MORE_EFFECTS = tuple(f"effect-{number}" for number in range(2, 10))
_ACTIONS = f"{', '.join(name for name in GESTURE_ACTIONS if name not in _MORE_EFFECTS)} to effect-9"
_FACES = re.compile(r" *[1-9][0-9]{0,8} *(, *[1-9][0-9]{0,8} *)*")
_RANGE = re.compile(rf"{_NUMBER},{_NUMBER}")


_REPLACED: Mapping[str, str] = MappingProxyType(
    {
        "softness": "use feather, the width of a soft edge in pixels; softness 1 is feather 0",
        "force": "nothing is written over here: a name that is taken gets the next free number",
    }
)


@dataclass(frozen=True)
class Spec:
    """All about one setting. The choices of a text are only suggestions.

    low and high bound numbers, both included; `zero` says what 0 means where it is below low and still allowed.
    `in_replay` is the default of replay and archive where that is another one. `was` is a name that it had in earlier
    versions, `also` another one of today. `label` is what the window calls it, `placeholder` what help calls a value.
    """

    name: str
    default: SettingValue
    section: str
    help: str
    kind: SettingKind
    choices: tuple[str, ...] = ()
    low: float = 0
    high: float = 0
    zero: str = ""
    changes: Changes = "running"
    verbs: tuple[Verb, ...] = ("live", "replay", "archive")
    in_replay: SettingValue | None = None
    was: str = ""
    also: str = ""
    label: str = ""
    placeholder: str = ""

    @property
    def other_names(self) -> tuple[str, ...]:
        """By which it is known, too."""
        return tuple(name for name in (self.was, self.also) if name)

    @property
    def flag(self) -> str:
        """Its option on the command line."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def needed(self) -> str:
        """What a value has to be: 'a number from 0 to 1'."""
        if self.kind == "choice":
            return f"one of {', '.join(self.choices)}"
        if self.kind in ("int", "float"):
            what = "a whole number" if self.kind == "int" else "a number"
            return f"{what} from {self.low:g} to {self.high:g}" + (", or 0," if self.zero else "")
        others: dict[SettingKind, str] = {
            "bool": "true or false",
            "size": f"a size such as 640x480, {_MOST_SIDE} a side at most,",
            "range": "two numbers with a comma, the lower one first, such as 0,1 or -1,1,",
            "faces": "numbers of faces with commas, such as 1,3,",
            "point": "two numbers from 0 to 1 with a comma, such as 0.5,0.5,",
            "background": "an image, a video, or a color such as red or #3366cc",
            "class": f"a class' name, its number from 0 to {_MOST_CLASSES}, several with commas, or -1",
            "gestures": f"pairs such as open-palm=freeze,thumb-up=effect-2, of {', '.join(GESTURES)} and {_ACTIONS},",
            "texts": f"text on one line, or a list of up to {MOST_CAMERAS} such,",
        }
        return others.get(self.kind, "text on one line")

    @property
    def usual(self) -> str:
        """The default in words; an empty background is a built-in one."""
        return as_text(self.default) or (DEFAULT_BACKGROUND if self.kind == "background" else _NO_VALUE)

    @property
    def takes(self) -> str:
        """What another value takes while live runs, to go on with in a sentence about the setting; '' if nothing."""
        words: dict[Changes, str] = {
            "reopens camera": "reopens the camera",
            "restart": "takes effect after restart",
            "restart to end": "counts at once in a file that is saved; turning it off takes effect after restart",
        }
        return words.get(self.changes, "")


def _setting(section: str, default: SettingValue, help: str, kind: SettingKind | None = None, **more: Any) -> Any:
    """A field of Settings; its kind is that of its default, unless it is said."""
    kinds: dict[type, SettingKind] = {
        bool: "bool",
        int: "int",
        float: "float",
        str: "choice" if "choices" in more else "text",
    }
    said = {"section": section, "help": help, "kind": kind or kinds[type(default)]}
    return field(default=default, metadata=said | more)


_live: tuple[Verb, ...] = ("live",)
_single: tuple[Verb, ...] = ("live", "replay")  # what names the outputs of one run, or is for somebody who watches
_camera = partial(_setting, "camera", changes="reopens camera", verbs=_live)
_work = partial(_setting, "work", verbs=_live)
_model, _picture, _mask, _output = (partial(_setting, section) for section in ("model", "picture", "mask", "output"))
_framing, _window = (partial(_setting, section, verbs=_single) for section in ("framing", "window"))
_once: Changes = "restart"
_share: dict[str, Any] = {"low": 0, "high": 1}


@dataclass(frozen=True)
class Settings:
    """All settings of live, replay and archive. Use with_values to make others: it refuses invalid values."""

    camera: str | tuple[str, ...] = _camera(
        "0", "Number, device, stream's address, recording or pattern; several: a grid.", "texts"
    )
    size: str = _camera("640x480", "Resolution to ask a camera for.", "size", label="resolution")
    fps: float = _camera(
        30.0, "Frames per second to ask a camera for.", low=1, high=1000, zero="any", label="frame rate"
    )
    pixels: str = _camera(
        "auto", "Video format to ask a camera for.", choices=("auto", "yuyv", "nv12", "mjpg"), label="video format"
    )
    camera_api: str = _camera(
        "auto", "System interface to a camera.", choices=("auto", "v4l2", "dshow", "msmf", "avfoundation"), was="api"
    )
    microphone: str = _camera("", "Microphone to record, not the source's sound: a name of --list, or default.")
    sound: bool = _camera(True, "Record sound, where the source has some or a microphone is named.")
    mute: bool = _setting("camera", False, "Record silence, as long as it is on.", verbs=_live)

    model: str = _model("selfie", "A name of the catalogue or a .tflite file.", "text", choices=(*CATALOGUE, *COMBINED))
    backend: str = _model(
        "auto", "Where the network runs and pictures are drawn.", choices=("auto", "gl", "cpu"), changes=_once
    )
    cpu: "CpuEngine" = _model(
        "auto", "What runs it on the CPU: code made for it (native), or TensorFlow Lite.",
        choices=("auto", "native", "tflite"), changes=_once, label="on the CPU",
    )  # fmt: skip
    threads: int = _model(
        0, "Threads of the network on the CPU.", low=1, high=64, zero="by the machine", changes=_once,
        label="CPU threads",
    )  # fmt: skip
    gpu: str = _model(
        "", "Number of a GPU in doctor's list, or part of its name; else the first working.", "text",
        changes=_once, placeholder="N|NAME", label="GPU",
    )  # fmt: skip
    gl_api: str = _model(
        "auto", "OpenGL, or OpenGL ES, which auto takes without OpenGL 4.3.", choices=("auto", "gl", "gles"),
        changes=_once, label="OpenGL or ES",
    )  # fmt: skip
    precision: "Precision" = _model(
        "fp32",
        "Of what the GPU stores; fp16-arithmetic: of products, too; bf16: of the CPU's.",
        choices=("fp32", "fp16", "fp16-arithmetic", "bf16"),
        changes=_once,
    )
    hybrid: "Hybrid" = _model(
        "expanded", "Of floats with weights of bytes: as floats, or rounded as TensorFlow Lite does.",
        choices=("expanded", "reference"), changes=_once,
    )  # fmt: skip
    compile_budget: float = _model(
        10.0,
        "Seconds of CPU time to compile shaders in, about; less makes them slower.",
        low=0,
        high=3600,
        changes=_once,
    )
    tune: bool = _model(
        True, "Measure kernels in the background on a new GPU, for the next start.",
        verbs=_live, changes=_once,
    )  # fmt: skip
    fit: "Fit" = _model(
        "stretch", "How frames get the network's aspect.", choices=("stretch", "crop", "letterbox"), changes=_once
    )
    preprocessing: "Preprocessing" = _model(
        "auto",
        "How frames become its input; auto averages noise and lightens dark frames.",
        choices=("auto", "plain"),
        changes=_once,
    )
    input_range: str = _model("", "What black and white are for a model that does not say it: LO,HI.", "range")
    activation: str = _model(
        "auto", "What such a model's output still needs.", choices=("auto", "none", "sigmoid", "softmax")
    )
    channel: str = _model(
        "", "The class to show of such a model, or several, by name or number; else people.", "class",
        also="classes",
    )  # fmt: skip
    task: str = _model(
        "auto", "What a model does, where it does not say it: masks, a picture, boxes, and so on.",
        choices=("auto", "segmentation", "picture", "classification", "detection", "points"),
    )  # fmt: skip
    output_range: str = _model(
        "", "What black and white are in the picture that such a model puts out: LO,HI.", "range"
    )
    most: int = _model(
        0, "How many faces, hands or people are followed at most.", low=1, high=64, zero="four, of detectors eight",
        changes=_once, label="followed at most",
    )  # fmt: skip
    memory: "MemoryMode" = _model(
        "arena", "How tensors share memory: places in one buffer, buffers in turns, not at all.",
        choices=("arena", "objects", "naive"), changes=_once,
    )  # fmt: skip
    planner: str = _model(
        "", "The strategy that plans this memory; else the smallest.", "text", changes=_once, placeholder="NAME",
        label="memory planner",
    )  # fmt: skip
    reorder: bool = _model(
        False, "Run independent kernels in the order that takes the least memory.", changes=_once,
        label="memory order",
    )  # fmt: skip

    effect: Effect = _picture("blur", "What is drawn.", choices=EFFECTS, in_replay="tint")
    background: str = _picture(
        "",
        "Image, video, color (red, #rrggbb) or built in: dusk, room, studio, lights.",
        "background",
        choices=(*BUILT_IN_BACKGROUNDS,),
    )
    blur: float = _picture(
        0.0,
        "Radius of the blur, in pixels of the frame.",
        low=LEAST_RADIUS,
        high=MOST_RADIUS,
        zero="by the height",
        label="blur radius",
    )
    strength: float = _picture(1.0, "How much of a network's picture covers the frame.", **_share)
    legend: bool = _picture(True, "The names of the classes beside their colors, with the effect classes.")
    light_wrap: float = _picture(0.0, "How much light of the background falls on the person's edge.", **_share)
    mirror: bool = _picture(False, "Flip the picture horizontally, as in a mirror.", label="flip horizontally")
    face_delay: int = _picture(
        3, "Frames that hiding faces waits, to cover them before they are found.", low=0, high=30,
        in_replay=15, label="faces ahead",
    )  # fmt: skip
    open_faces: str = _picture(
        "", "Faces that these leave open, by their numbers, such as 1,3.", "faces", verbs=_single, label="open faces",
    )  # fmt: skip
    face_numbers: bool = _picture(
        False, "Show the number of each face that these hide, or leave open.", verbs=_single, label="numbers of faces"
    )
    freeze: bool = _picture(False, "Hold the picture as it is; sound and masks go on.", verbs=_live)
    private: bool = _picture(
        False, "Never show the room: refuse every effect that would; blur where none is named.",
        changes="restart to end",
    )  # fmt: skip
    side_by_side: bool = _picture(False, "The picture as it came beside the result, in the window only.", verbs=_single)

    refine: bool = _mask(True, "Refine the network's mask: edges, smooth and delay-video count; off: as it is.")
    detail: str = _mask(
        "off", "Look at people once more, larger: finer masks, 3 times a network's work.",
        choices=("off", "on"), changes=_once,
    )  # fmt: skip
    keep_held: bool = _mask(
        False, "Have what moves with a person's hands join the mask: phones, cups.", changes=_once,
        label="keep what is held",
    )  # fmt: skip
    edges: bool = _mask(True, "Let the mask follow the edges of the picture.")
    smooth: float = _mask(0.5, "How much of a still mask is kept from frame to frame.", label="smoothing", **_share)
    threshold: float = _mask(0.5, "The mask's value that becomes one half.", **_share)
    gamma: float = _mask(1.0, "Power of the mask: above 1 less person, below more.", low=LEAST_GAMMA, high=MOST_GAMMA)
    grow: float = _mask(0.0, "Pixels of the frame by which the person grows; below 0 it shrinks.", low=-20, high=20)
    feather: float = _mask(0.0, "Pixels of the frame over which the edge fades; 0: as the mask has it.", low=0, high=50)
    delay_video: bool = _mask(False, "Look one frame ahead: in live the picture comes a frame later.", in_replay=True)

    frame: "FramingMode" = _framing(
        "off", "Follow a person, or all of them: the picture shows their part of the frame.",
        choices=("off", "person", "group"), label="follow",
    )  # fmt: skip
    zoom: float = _framing(1.0, "How many times a part of what is framed is enlarged.", low=1, high=MOST_ZOOM)
    pan: str = _framing("0.5,0.5", "Where the middle of that part is, from the left and from the top.", "point")
    gestures: str = _framing(
        "", "What gestures of hands are for, such as open-palm=freeze,thumb-up=effect-2.", "gestures",
        verbs=_live,
    )  # fmt: skip

    every: int = _work(1, "A new mask for every so many frames.", low=1, high=60, label="frames per mask")
    skip_still: bool = _work(False, "No new mask while the picture stands still.")
    still_db: float = _work(
        35.0, "How like the last one a picture that stands still is, in dB.", low=10, high=100, label="still from dB"
    )
    small_model: str = _work(
        "selfie-landscape", "The model for when time is short: a name or a .tflite file.", "text",
        choices=SEGMENTERS,
    )  # fmt: skip
    auto: bool = _work(
        False, "Work less, as far as is needed to keep the camera's frame rate.", label="keep frame rate"
    )

    out: str = _output(
        "", "Record the picture: a video, or a folder for PNG files.", "path", was="record", label="record to",
        verbs=_single,
    )  # fmt: skip
    masks: str = _output(
        "",
        "Record the masks: a gray video, or a folder for PNG files.",
        "path",
        was="mattes",
        label="record masks to",
        verbs=_single,
    )
    cutouts: str = _output(
        "",
        "Record the person alone: a folder for PNG files with transparency.",
        "path",
        label="record cutouts to",
        verbs=_single,
    )
    codec: Codec = _output(
        "auto", "Of videos; by default what their ending is for.", choices=CODECS, label="video codec"
    )
    quality: int = _output(
        USUAL_QUALITY, "Of videos: 0 makes the smallest files.", low=0, high=100, label="video quality"
    )
    json_lines: str = _output(
        "", "A JSON object for each frame of all that is found in it: .jsonl, - for a pipe.", "path", changes=_once,
        label="findings to", verbs=_single,
    )  # fmt: skip
    virtual_camera: bool = _output(False, "Be a camera to other programs.", verbs=_live)

    overlay: bool = _window(False, "Figures on the picture; in a window of replay unless it is turned off.")
    overlay_style: OverlayStyle = _window(
        "compact", "Which figures: three lines and the graph of frame times, or all.", choices=get_args(OverlayStyle)
    )
    overlay_corner: Corner = _window("top-left", "The corner of the figures.", choices=get_args(Corner))
    overlay_scale: float = _window(1.0, "How large the text of the figures is, times the usual.", low=0.5, high=4)
    panel: bool = _window(False, "This panel of settings, in the window.")
    fullscreen: bool = _window(False, "Fill the screen.", label="full screen")
    backgrounds: str = _window(
        "", "Folder of pictures and videos for the panel; else texelflow in Pictures.", "path",
        label="backgrounds folder",
    )  # fmt: skip
    start_hint: bool = _window(
        True, "A line at start that names the keys for help and for settings.", label="hint at start"
    )

    @property
    def cameras(self) -> tuple[str, ...]:
        """All sources that are shown, in their order."""
        return (self.camera,) if isinstance(self.camera, str) else self.camera


@lru_cache(maxsize=4)
def specs(verb: Verb | None = None) -> tuple[Spec, ...]:
    """All settings, or those of one verb, in their order, section by section; defaults are that verb's."""
    every = tuple(
        Spec(each.name, getattr(Settings, each.name), **{"label": each.name.replace("_", " "), **each.metadata})
        for each in fields(Settings)
    )
    if verb in ("replay", "archive"):
        every = tuple(spec if spec.in_replay is None else replace(spec, default=spec.in_replay) for spec in every)
    return tuple(spec for spec in every if verb is None or verb in spec.verbs)


def defaults(verb: Verb) -> Settings:
    """The settings of a verb without options and file."""
    return replace(Settings(), **{spec.name: spec.default for spec in specs(verb)})  # type: ignore[arg-type]


def with_private_defaults(settings: Settings) -> Settings:
    """Defaults of a private session."""
    return replace(settings, effect=PRIVATE_EFFECT)


def of_verb(settings: Settings, verb: Verb) -> Settings:
    """The settings, with defaults for those that a verb does not have."""
    others = {spec.name: spec.default for spec in specs() if verb not in spec.verbs}
    return replace(settings, **others)  # type: ignore[arg-type]


def current_names(values: Mapping[str, object]) -> dict[str, object]:
    """The values under the names that settings have now."""
    renamed = {name: spec.name for spec in specs() for name in spec.other_names}
    return {renamed.get(name, name): value for name, value in values.items()}


def with_values(settings: Settings, values: Mapping[str, object], where: Callable[[str], str] = str) -> Settings:
    """The settings with some values replaced. `where` says what a complaint begins with: the place of a setting's name.

    Raises UsageError for unknown names and for values of a wrong type, out of range or not among the choices.
    """
    known, found = {spec.name: spec for spec in specs()}, dict[str, Any]()
    known |= {name: spec for spec in specs() for name in spec.other_names}
    for name, raw in values.items():
        if name not in known:
            raise UsageError(f"{where(name)} is no setting{setting_meant(name, known)}")
        value = found[known[name].name] = value_of(known[name], raw)
        if value is None:
            near = meant(raw, known[name].choices) if isinstance(raw, str) else ""
            raise UsageError(f"{where(name)} {as_text(raw)}: {known[name].needed} is needed{near}")
    return replace(settings, **found)


def is_valid(name: str, value: object) -> bool:
    """Whether a setting may have that value, and keeps it as it is."""
    return value_of(next(spec for spec in specs() if spec.name == name), value) == value


def with_background(settings: Settings, background: str) -> Settings:
    """The settings by which a background, valid as such, is behind people."""
    return replace(settings, background=background, effect="replace")


def changed(before: Settings, after: Settings) -> tuple[str, ...]:
    """The names of the settings that differ."""
    return tuple(spec.name for spec in specs() if getattr(before, spec.name) != getattr(after, spec.name))


def while_running(before: Settings, after: Settings) -> tuple[Settings, tuple[str, ...]]:
    """What of a change can be had now, and the names of the settings that take effect after restart."""
    late = {spec.name for spec in specs() if spec.changes == "restart"}
    late |= {spec.name for spec in specs() if spec.changes == "restart to end" and getattr(before, spec.name)}
    waiting = late & {*changed(before, after)}
    return replace(after, **{name: getattr(before, name) for name in waiting}), tuple(sorted(waiting))


def meaning(spec: Spec) -> str:
    """The range of a number, and the default, unless it is nothing: 'from 0 to 1; 0.5 by default'; of gestures, all."""
    if spec.kind == "gestures":
        return f"gestures: {', '.join(GESTURES)}; actions: {_ACTIONS}"
    numbers = f"from {spec.low:g} to {spec.high:g}; " if spec.kind in ("int", "float") else ""
    zero = f"0: {spec.zero}; " if spec.zero else ""
    return "" if spec.usual == _NO_VALUE else f"{numbers}{zero}{spec.usual} by default"


def setting_meant(name: str, names: Iterable[str]) -> str:
    """What to use instead of a setting that is gone, else as `meant`."""
    replacement = _REPLACED.get(name.lstrip("-"))
    return f"; {replacement}" if replacement else meant(name, names)


def as_text(raw: object) -> str:
    """A value in a line of text: short, without control characters, or the digits of a number that has no end."""
    if isinstance(raw, (dict, list)):
        return "(a table)" if isinstance(raw, dict) else f"(a list of {len(raw)})"
    if isinstance(raw, bool):
        return str(raw).lower()
    if isinstance(raw, int) and raw.bit_length() > 1000:
        return "(that many)"
    if isinstance(raw, (int, float)):
        return f"{raw:g}"
    text = str(raw)
    return (text if text.isprintable() else repr(text))[:80]


def value_of(spec: Spec, raw: object) -> SettingValue | None:
    """What a setting becomes by a value as it was written; None if it cannot be that."""
    if spec.kind == "bool" or isinstance(raw, bool):
        return raw if spec.kind == "bool" and isinstance(raw, bool) else None
    if spec.kind == "class" and isinstance(raw, int):
        return None if not -1 <= raw <= _MOST_CLASSES else "" if raw < 0 else str(raw)
    if spec.kind in ("int", "float"):
        if not isinstance(raw, int if spec.kind == "int" else (int, float)):
            return None
        allowed = spec.low <= raw <= spec.high or (raw == 0 and spec.zero)
        return (int(raw) if spec.kind == "int" else float(raw)) if allowed else None
    if spec.kind == "texts" and isinstance(raw, (list, tuple)):
        return _several(spec, raw)
    text = str(raw) if isinstance(raw, int) and abs(raw) < 100 else raw  # camera = 0
    if not isinstance(text, str) or len(text) > _LONGEST or not text.isprintable():
        return None
    if (spec.kind == "size" and not _is_size(text)) or (spec.kind == "choice" and text not in spec.choices):
        return None
    if spec.kind == "class" and text.strip() == "-1":
        return ""
    if (spec.kind == "range" and text and not _is_range(text)) or (spec.kind == "point" and not _is_point(text)):
        return None
    if spec.kind == "background" and ("://" in text or (text.startswith("#") and not COLOR.fullmatch(text))):
        return None
    if spec.kind == "gestures" and parse_gestures(text) is None:
        return None
    if spec.kind == "faces" and text and not _FACES.fullmatch(text):
        return None
    if spec.kind == "path":
        text = local_name(text)
    return os.path.expanduser(text) if text.startswith("~/") else text  # no shell does it in files and panels


def _several(spec: Spec, raw: Sequence[object]) -> SettingValue | None:
    """The texts of a list, none of them empty; one alone is a text."""
    if not 1 <= len(raw) <= MOST_CAMERAS or any(isinstance(each, (list, tuple)) for each in raw):
        return None
    texts = tuple(value_of(spec, each) for each in raw)
    return texts[0] if len(texts) == 1 else texts if all(texts) else None  # type: ignore[return-value]  # of texts


def _is_range(text: str) -> bool:
    if not _RANGE.fullmatch(text):
        return False
    low, high = map(float, text.split(","))
    return low < high


def _is_point(text: str) -> bool:
    try:
        return all(0 <= part <= 1 for part in parse_point(text))
    except ValueError:
        return False


def parse_point(text: str) -> tuple[float, float]:
    """The two numbers of a setting that is a point. Raises ValueError."""
    x, y = map(float, text.split(","))
    return x, y


def parse_faces(text: str) -> frozenset[int]:
    """The numbers of a setting that names faces. Raises ValueError."""
    return frozenset(int(number) for number in text.split(",")) if text else frozenset()


def _is_size(text: str) -> bool:
    size = parse_size(text)
    return size is not None and max(size) <= _MOST_SIDE
