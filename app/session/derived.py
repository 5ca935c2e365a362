"""Derives from settings what is asked of each part of a session."""

from collections.abc import Mapping
from pathlib import Path

from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.model.graph import Hybrid
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.plan.memory.memory_options import MemoryOptions

from ..capture.source import CaptureRequest
from ..files import ENDINGS, FileKind, Read, Write
from ..frame.inference.backends import ComputeChoice, CpuChoice
from ..frame.inference.network_options import NetworkOptions
from ..frame.looks.background import background_file
from ..frame.looks.effects import HIDING_FACES
from ..frame.looks.looks import ChosenLook, Framing, Look, parse_color
from ..frame.refinement.refine import Refinement
from ..frame.refinement.temporal import memory_frames
from ..media.codecs import TRANSPARENT, USUAL_QUALITY, choose_encoding
from ..models.catalogue import model_path
from ..models.spec import SpecOptions, parse_range, parse_task
from ..outputs.file_sinks import Writing
from ..outputs.png_files import PIPE, is_picture, wants_folder
from ..overlay.performance import FigureLook
from ..picture.size import parse_size
from ..settings.gesture_actions import parse_gestures
from ..settings.settings import Settings, Verb, parse_faces, parse_point
from ..tracking.finder import FoundKind
from ..tracking.gesture_names import Gesture
from .workload import Work

RECURRENT_LEAD = 48  # frames before a range, that a network which remembers sees
SEEK_LEAD = 6  # frames before a seek in a window, that the network sees: steady masks at once, exact ones soon after
RECURRENT_SEEK_LEAD = 12  # the same of a network that remembers
COVER_LEAD = 30  # frames before a range, whose faces may be lost in it
LONGEST_LEAD = 300  # frames before a range; more would take longer than anybody waits


def capture_request_of(settings: Settings) -> CaptureRequest:
    """Of each source; a recording begins again at its end. Of several none is heard."""
    size, hears_source = parse_size(settings.size), settings.sound and not settings.microphone
    hears_source &= len(settings.cameras) == 1
    assert size, "settings are valid"
    return CaptureRequest(
        size, settings.fps, settings.pixels, settings.camera_api, loop=True, sound=hears_source
    )  # fmt: skip


def chosen_look_of(settings: Settings) -> ChosenLook:
    """Of pictures. What the effect does not use is kept for another one. Opens no file."""
    color = parse_color(settings.background)
    look = Look(
        effect="color" if color and settings.effect == "replace" else settings.effect,
        color=color or Look.color,
        radius=settings.blur or None,
        light_wrap=settings.light_wrap,
        threshold=settings.threshold,
        gamma=settings.gamma,
        grow=settings.grow,
        feather=settings.feather,
        mirror=settings.mirror,
        side_by_side=settings.side_by_side,
        strength=settings.strength,
        clears=settings.private,
        open_faces=parse_faces(settings.open_faces),
        face_numbers=settings.face_numbers,
        legend="none" if not settings.legend else "left" if "right" in settings.overlay_corner else "right",
    )
    background = None if color or not settings.background else background_file(settings.background)
    return ChosenLook(look, background, framing_of(settings))


def framing_of(settings: Settings) -> Framing:
    """Of pictures. What is panned to is a place in the picture, which may be mirrored."""
    x, y = parse_point(settings.pan)
    return Framing(settings.frame, settings.zoom, (1 - x if settings.mirror else x, y))


def figure_look_of(settings: Settings) -> FigureLook:
    """Of the figures on the picture."""
    return FigureLook(settings.overlay_style == "full", settings.overlay_corner, settings.overlay_scale)


def refinement_of(settings: Settings) -> Refinement:
    """Of masks; without any they are the network's own."""
    if not settings.refine:
        return Refinement(edges=False, smooth=0.0)
    return Refinement(settings.edges, settings.smooth, int(settings.delay_video))


def mask_memory_of(settings: Settings) -> int | None:
    """On how many frames before it a mask depends, so far that it shows in 8 bits; None: on all."""
    return memory_frames(refinement_of(settings).least)


def lead_of(settings: Settings, remembers: bool = False) -> int:
    """How many frames before the first one the network sees: none where masks do not depend on those before.

    Of a network that `remembers` nobody knows how long. One with gates of random weights keeps half of a difference for
    four frames: of masks that differ by 190 of 255, 4 are left after 24 frames, 0.4 after 36 and 0.1 after 48.
    """
    memory = mask_memory_of(settings)
    lead = LONGEST_LEAD if memory is None else min(memory, LONGEST_LEAD)
    lead = max(lead, COVER_LEAD) if settings.effect in HIDING_FACES else lead
    return max(lead, RECURRENT_LEAD) if remembers else lead


def seek_lead_of(settings: Settings, remembers: bool = False) -> int:
    """The same of a seek in a window, which is not to wait."""
    return min(lead_of(settings, remembers), RECURRENT_SEEK_LEAD if remembers else SEEK_LEAD)


def trail_of(settings: Settings) -> int:
    """How many frames after the last one the networks see, for its mask, or for faces that are about to come."""
    return max(int(settings.refine and settings.delay_video), reach_of(settings))


def reach_of(settings: Settings) -> int:
    """How many frames are seen before they are drawn, by those who hide faces."""
    return settings.face_delay if settings.effect in HIDING_FACES else 0


def compute_of(settings: Settings) -> ComputeChoice:
    """Of where the network runs."""
    return ComputeChoice(settings.backend, CpuChoice(settings.cpu, settings.threads), settings.precision)


def asked_memory(settings: Settings) -> MemoryOptions:
    """Of the network's tensors on the GPU. Raises UsageError for a planner that there is not."""
    options = MemoryOptions(settings.memory, settings.planner, reorders=settings.reorder)
    try:
        assert options.strategy
    except UsageError as error:
        raise UsageError(f"--{error}") from None
    return options


def check_hybrid(hybrid: Hybrid, backend: str | None, cpu: str) -> None:
    """Raise UsageError for a way to compute that is asked of TensorFlow Lite alone."""
    if hybrid != "expanded" and (backend, cpu) == ("cpu", "tflite"):
        raise UsageError(f"--hybrid {hybrid}: TensorFlow Lite has its own kernels; add --cpu native, or leave it out")


def network_options_of(settings: Settings) -> NetworkOptions:
    """Of how it is compiled, and sees frames. Raises UsageError as asked_memory."""
    compiling = CompileOptions(
        precision=settings.precision, compile_budget_s=settings.compile_budget, memory=asked_memory(settings)
    )
    detail = settings.refine and settings.detail == "on"
    held = settings.refine and settings.keep_held
    return NetworkOptions(compiling, settings.fit, settings.preprocessing, most=settings.most, detail=detail, held=held)


def spec_of(settings: Settings, model: str) -> SpecOptions:
    """The meaning of a model's numbers, about `model` alone, not about the small model, and how any is computed."""
    if model != settings.model:
        return SpecOptions(hybrid=settings.hybrid)
    return SpecOptions(
        parse_range(settings.input_range) if settings.input_range else None,
        None if settings.activation == "auto" else settings.activation,
        settings.channel or None,
        None if settings.task == "auto" else parse_task(settings.task),
        parse_range(settings.output_range, "--output-range") if settings.output_range else None,
        hybrid=settings.hybrid,
    )


def companions_of(settings: Settings) -> tuple[FoundKind, ...]:
    """What is to be found in each frame beside the model's own work, by settings that go by faces or hands.

    It costs networks of its own, so that there is nothing without such a setting. What was found is in
    SwitchableStages.findings, and in each FrameRecord.
    """
    gestures = gestures_of(settings)
    kinds: dict[FoundKind, bool] = {
        "face": settings.frame != "off" or "hand-raised" in gestures,
        "hidden face": settings.effect in HIDING_FACES,
        "hand": bool(gestures) or (settings.refine and settings.keep_held),
    }
    return tuple(kind for kind, wanted in kinds.items() if wanted)


def gestures_of(settings: Settings) -> Mapping[Gesture, str]:
    """What each gesture is for, by the names of gesture_actions.py."""
    found = parse_gestures(settings.gestures)
    assert found is not None, "settings are valid"
    return found


def work_of(settings: Settings) -> Work:
    """Of the network."""
    return Work(settings.every, settings.skip_still, settings.still_db, settings.auto)


def reads_of(settings: Settings, config: Path | None, verb: Verb) -> tuple[Read, ...]:
    """Of the disk, but for the source itself; `config` is the file of settings."""
    reads = [Read("the file of settings", config)] if config else []
    reads.append(Read("the model", model_path(settings.model)))
    if verb == "live" and settings.small_model:
        reads.append(Read("the small model", model_path(settings.small_model)))
    background = chosen_look_of(settings).background
    return (*reads, Read("the background", background)) if background else tuple(reads)


def writes_of(settings: Settings, one_picture: bool = False) -> tuple[Write, ...]:
    """The outputs that settings name; a source of one_picture alone makes single PNG files."""

    def kind(name: str, otherwise: FileKind = "video") -> FileKind:
        path = Path(name)
        if wants_folder(path):
            return "pictures"
        if one_picture and (is_picture(path) or otherwise == "pictures"):
            return "picture"
        return "still" if one_picture and path.suffix.lower() not in ENDINGS["video"] else otherwise

    named: list[tuple[str, str, FileKind]] = [
        ("--out", settings.out, kind(settings.out)),
        ("--masks", settings.masks, kind(settings.masks)),
        ("--cutouts", settings.cutouts, kind(settings.cutouts, "pictures")),
        ("--json-lines", settings.json_lines, "lines"),
    ]
    return tuple(Write(flag, Path(path), kind) for flag, path, kind in named if path and path != PIPE)


def writes_any(settings: Settings) -> bool:
    """Whether anything is recorded, to a file or a pipe."""
    return bool(settings.out or settings.masks or settings.cutouts)


def keeps_alpha(settings: Settings, pipes_pictures: bool = False) -> bool:
    """Whether the recording of the picture keeps its transparency: that of an effect that has some, where it can."""
    out = Path(settings.out)
    holds = wants_folder(out) or is_picture(out) or out.suffix.lower() in TRANSPARENT
    holds |= settings.out == PIPE and pipes_pictures
    return settings.effect == "cutout" and holds


def writing_of(settings: Settings, made_by: str | None = None, pipes_pictures: bool = False) -> Writing:
    """Of files."""
    quality = None if settings.quality == USUAL_QUALITY else settings.quality
    return Writing(settings.codec, quality, made_by, pipes_pictures)


def check_videos(settings: Settings, strict: bool, pipes_pictures: bool = False) -> None:
    """Raise UsageError for videos that cannot be written so; `strict` asks for the transparency of the effect, too."""
    _check_pipe(settings, strict and not pipes_pictures)
    writing = writing_of(settings)
    for flag, name, alpha in (("--out", settings.out, settings.effect == "cutout"), ("--masks", settings.masks, False)):
        path = Path(name)
        if not name or wants_folder(path) or is_picture(path) or name == PIPE:
            continue
        ending = path.suffix.lower()
        if ending in ENDINGS["video"]:  # others are told of where files are
            try:
                choose_encoding(ending, writing.codec, writing.quality, alpha and (strict or ending in TRANSPARENT))
            except UsageError as error:
                raise UsageError(f"{flag} {name}: {error}") from None


def _check_pipe(settings: Settings, opaque: bool) -> None:
    """Raise UsageError for what no pipe takes; an `opaque` one takes no transparency."""
    for flag, name in (("--masks", settings.masks), ("--cutouts", settings.cutouts)):
        if name == PIPE:
            raise UsageError(
                f"{flag} -: only --out goes into a pipe; name {'a file or ' * (flag == '--masks')}a folder"
            )
    if settings.out == settings.json_lines == PIPE:
        raise UsageError("--json-lines -: one output alone goes into a pipe, and --out does; name a file")
    if opaque and settings.out == PIPE and settings.effect == "cutout":
        raise UsageError("--out -: a video in a pipe has no transparency; --format png has it")
