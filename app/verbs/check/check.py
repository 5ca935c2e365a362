"""`texelflow check TARGET`: compares the results of a recording or a model with TensorFlow Lite's on the CPU."""

import math
import os
from dataclasses import dataclass, field, replace
from pathlib import Path

from texelflow.gpu_delegate.base.errors import UnsupportedError, UsageError
from texelflow.gpu_delegate.base.wording import meant
from texelflow.gpu_delegate.cpu.rewriting import without_custom_landmarks
from texelflow.gpu_delegate.delegate.interpreter_delegate import gpu_delegate
from texelflow.gpu_delegate.delegate.native_delegate import native_delegate
from texelflow.gpu_delegate.model.graph import Hybrid
from texelflow.gpu_delegate.model.layout import stores_halves
from texelflow.gpu_delegate.plan.compile_options import COMPILE_DEFAULTS, CompileOptions
from texelflow.gpu_delegate.reading.bundles import on_disk
from texelflow.gpu_delegate.reading.foreign_files import MOST_START, foreign_file, is_archive

from ...console import Console
from ...files import Files, Read, Write, own_name, settle
from ...frame.finding.finder_opening import fetch_partners
from ...frame.inference.backends import check_bf16, delegate_options
from ...frame.inference.network_options import NetworkOptions
from ...media.sources import FileSource, Position
from ...models.catalogue import model_path, resolve
from ...models.entries import entry_of
from ...models.finding_loading import load_shown_model
from ...models.finding_model import FindingModel
from ...models.spec import SpecOptions
from ...picture.preprocess import Preprocessing
from ...replay.replay import CUT_OFF
from ..chosen_signature import load_signature, signature_figures
from .check_clip import DEFAULT_REPORT, check_clip
from .check_delegate import check_delegate
from .check_found import check_found
from .check_model import Subject, check_model, subject_of

BACKENDS = ("gl", "native", "delegate")


@dataclass(frozen=True)
class CheckOptions:
    """The options of the verb; None where none was given."""

    model: str = "selfie"  # for a recording
    backend: str = "gl"  # or native, the CPU's own code; or delegate, the outputs of many runs of a model
    runs: int | None = None  # of the delegate
    tolerance: float | None = None  # 1e-3 for masks (fp16: 0.2) and for outputs, 1e-4 for tensors
    report: Path | None = None  # picture of a recording's worst frame
    first: Position = 0
    last: Position | None = None
    spec: SpecOptions = field(default_factory=SpecOptions)
    json: bool = False
    compiling: CompileOptions = COMPILE_DEFAULTS  # a recording's network is fused
    preprocessing: Preprocessing = "plain"  # of a recording: what can be compared with other programs
    force: bool = False  # a report that is there may be written over
    signature: str | None = None  # of a model; its first by default
    hybrid: Hybrid = "expanded"  # of a model


def run_check(target: str, options: CheckOptions, console: Console) -> int:
    """Check a recording or a model: 0 if GPU and CPU agree, 1 if not, 3 if they do as far as a cut-off recording goes.

    Raises the errors of loading either, and UsageError.
    """
    if options.tolerance is not None and not (math.isfinite(options.tolerance) and options.tolerance >= 0):
        raise UsageError(f"--tolerance {options.tolerance}: a number from 0 up is needed, such as 1e-3")
    if options.backend not in BACKENDS:
        raise UsageError(
            f"--backend {options.backend}: {' or '.join(BACKENDS)} is needed here{meant(options.backend, BACKENDS)}"
        )
    if options.backend != "delegate" and options.runs is not None:
        raise UsageError("--runs goes with --backend delegate; leave it out or give both")
    if options.backend == "native" and stores_halves(options.compiling.precision):
        raise UsageError("the CPU computes in fp32, or products in bf16; leave --precision or --backend native out")
    check_bf16(options.compiling.precision, options.backend == "native", "add --backend native")
    if options.backend == "delegate" and not options.compiling.fuse:
        raise UsageError("--unfused compares tensor by tensor; leave it or --backend delegate out")
    figures, code = (
        _check_model(target, options, console) if _is_model(target) else _check_clip(target, options, console)
    )
    if options.json:
        console.json(figures)
    return code


def _check_model(target: str, options: CheckOptions, console: Console) -> tuple[dict[str, object], int]:
    if options.report is not None:
        raise UsageError("--report is the picture of a recording's frame; a model has none")
    if options.first != 0 or options.last is not None:
        raise UsageError("--from and --to choose frames of a recording; a model has none")
    if replace(options.spec, input_range=None) != SpecOptions():
        raise UsageError(
            "--activation, --channel, --task and --output-range are about masks and pictures of a recording; a model's "
            "tensors are compared as they are"
        )
    if options.preprocessing != "plain":
        raise UsageError("--preprocessing is for recordings; a model's own tensors are compared")
    settle(Files((Read("the model", model_path(target)),)))
    with console.download() as progress:
        resolved = resolve(target, progress)
    graph = load_signature(resolved.path, options.signature, console, options.hybrid)
    if not (graph.nodes and graph.outputs):
        raise UsageError(f"{graph.name}: no operator gives anything out, so there is nothing to compare")
    said = without_custom_landmarks(graph)
    if said is not graph:
        console.note(
            f"{graph.name}: TensorFlow Lite lacks MediaPipe's ops on landmarks, and gets its own in their place"
        )
    entry = resolved.entry
    listed = options.spec.input_range or (entry.input_range if entry else None)
    subject = subject_of(entry.name if entry else graph.name, resolved.path, said, listed)
    figures, code = _compare(subject, options, console)
    return figures | signature_figures(graph), code


def _compare(subject: Subject, options: CheckOptions, console: Console) -> tuple[dict[str, object], int]:
    """Tensor by tensor; the outputs of what does not run wholly there, with TensorFlow Lite for the rest."""
    maker, refused = gpu_delegate(delegate_options(options.compiling)), ""
    if options.backend != "delegate":
        try:
            return check_model(subject, options.tolerance, console, options.compiling, options.backend)
        except UnsupportedError as error:
            if not options.compiling.fuse or options.compiling.precision == "bf16":
                raise
            if options.backend == "native":
                maker, refused = native_delegate(threads=1, every_part=True), str(error)
            how = "with TensorFlow Lite for the rest" if refused else "through the delegate"
            console.note(f"{error}; its outputs are compared {how}")
    return check_delegate(
        subject, options.tolerance, options.runs, console, maker, options.compiling.precision, refused
    )


def _check_clip(target: str, options: CheckOptions, console: Console) -> tuple[dict[str, object], int]:
    if not options.compiling.fuse:
        raise UsageError("--unfused is for models; a recording is checked on the program that shows it")
    if options.signature is not None:
        raise UsageError("--signature is for models; a recording has none")
    if options.hybrid != "expanded":
        raise UsageError("--hybrid is for models; leave it out for a recording")
    if options.backend == "delegate":
        raise UsageError("--backend delegate is for models; the network of a recording runs as it does in replay")
    reads = Read("the input itself", Path(target)), Read("the model", model_path(options.model))
    writes = (Write("--report", options.report, "picture"),) if options.report else ()
    settle(Files(reads, writes), options.force)
    with FileSource(target, options.first, options.last) as source:
        with console.download() as progress:
            model = load_shown_model(options.model, options.spec, progress)
            if isinstance(model, FindingModel):
                fetch_partners(model, progress)
        network = NetworkOptions(options.compiling, preprocessing=options.preprocessing)
        asked = options.tolerance, options.report, console, network, options.backend, own_name(DEFAULT_REPORT, reads)
        if isinstance(model, FindingModel):
            if options.preprocessing != "plain":
                raise UsageError(
                    f"--preprocessing is for masks; {model.name} finds things, and frames stay as they are"
                )
            figures, code = check_found(source, model, *asked)
        else:
            figures, code = check_clip(source, model, *asked)
        if source.truncated:
            console.warn(f"{target}: {source.truncated}")
            code = code or CUT_OFF
    return figures, code


def _is_model(target: str) -> bool:
    """By its name, or by what the file begins with; a bare word that is no file can only be a model's name."""
    path = Path(target)
    if entry_of(target) or path.suffix.lower() == ".tflite":
        return True
    try:
        if not path.is_file():  # opening a pipe may block forever
            return bool(on_disk(path)[1]) or (not path.suffix and not os.path.lexists(path))
        with path.open("rb") as file:
            start = file.read(MOST_START)
        return start[4:8] == b"TFL3" or is_archive(start) or foreign_file(start) is not None
    except (OSError, ValueError):
        return not path.suffix and not os.path.lexists(path)
