"""Summarizes a finished replay: the figures of the whole run by name, for JSON."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..console import counted
from ..frame.inference.masks import MaskDifference
from ..media.piece_source import PieceSource
from ..media.recording import Recording
from ..media.seeking import SeekableSource
from ..session.parts import SessionParts
from ..session.session import Session
from ..session.session_opening import SessionHost
from ..settings.settings import Settings
from .replay_options import ReplayOptions

RecordedSource = Recording | SeekableSource


def summarize_replay(
    options: ReplayOptions,
    settings: Settings,
    source: RecordedSource,
    session: Session,
    host: SessionHost,
    interrupted: bool,
) -> dict[str, Any]:
    """Figures of the whole run; times are milliseconds per frame by stage."""
    parts = session.parts
    info, compute, segmenter = source.info, parts.stages.current.compute, parts.stages.current.segmenter
    return {
        "file": str(options.file),
        "size": [info.width, info.height],
        "model": parts.stages.name,
        "backend": compute.backend,
        "precision": segmenter.precision,
        "renderer": compute.renderer(segmenter.on_cpu),
        "gl_version": compute.gl_version,
        "delegate": segmenter.delegated or None,
        **host.stats.summary(),
        "dispatches": segmenter.dispatches,
        "timer_note": parts.pipeline.timer_note,
        "interrupted": interrupted,
        "cut_off": source.truncated is not None,
        "missing": source.truncated,
        "written": session.written,
        "only_measured": not (options.window or session.written),
        "warnings": _warnings(options, settings, source, parts),
        **_where_pieces_meet(source),
        **({"agreement": _agreement(host.sampler.differences)} if host.sampler else {}),
    }


def _where_pieces_meet(source: RecordedSource) -> dict[str, Any]:
    """Checksums of a piece's ends."""
    if not isinstance(source, PieceSource):
        return {}
    return {"decoded_head": source.decoded_head, "decoded_tail": source.decoded_tail}


def _agreement(differences: Sequence[MaskDifference]) -> dict[str, Any] | None:
    """Of masks that were sampled with TensorFlow Lite's; None where none was."""
    if not differences:
        return None
    return {
        "frames": len(differences),
        "least_iou": min(difference.iou for difference in differences),
        "largest_error": float(np.max([difference.max_error for difference in differences])),
    }


def _warnings(options: ReplayOptions, settings: Settings, source: RecordedSource, parts: SessionParts) -> list[str]:
    canvas, name = parts.stages.current.canvas, options.file
    lines = list(parts.outputs.warnings)
    if canvas and canvas.message:
        lines.append(canvas.message)
    if parts.stages.current.segmenter.precision != settings.precision:
        why = "is not for quantized models" if settings.precision == "bf16" else "is for the GPU"
        lines.append(f"--precision {settings.precision} {why}: the CPU computed in fp32")
    is_mask = parts.stages.current.segmenter.picture is None
    if settings.masks and settings.refine and is_mask and canvas is None:
        lines.append("masks are the network's own: refinement needs OpenGL; --no-refine if that is what you want")
    if isinstance(source, Recording):  # what is watched in any order has no such numbers
        if source.damaged_frames:
            lines.append(f"{name}: {counted(source.damaged_frames, 'damaged frame')}")
        if source.rescaled_frames:
            lines.append(f"{name}: {source.rescaled_frames} frames changed size and were scaled to the first")
    if source.truncated:
        lines.append(f"{name} is cut off: {source.truncated}")
    return lines
