"""What stays open from one recording to the next: the model, the device with its context, code and weights.

Nothing that depends on a recording's frames is kept, so that each comes out as if it were the only one. What a device
has lost, or was left in the middle of by an error of its own, is opened anew for the next recording.
"""

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType

from texelflow.gpu_delegate.base.errors import DeviceError
from texelflow.gpu_delegate.targets.gl.context import Context

from ..console import Console
from ..frame.inference.backends import ComputeChoice
from ..frame.inference.cpu_path import CpuPath
from ..frame.inference.mask_sampler import MaskSampler, SampleSchedule, open_reference
from ..frame.stages.run_stats import RunStats
from ..models.catalogue import model_path
from ..models.finding_loading import ShownModel
from ..models.finding_model import FindingModel
from ..models.spec import SpecOptions
from ..picture.picture import PictureFormat
from ..session.derived import compute_of, network_options_of, spec_of
from ..session.kept_network import KeptNetwork
from ..session.session_model import session_model
from ..session.session_opening import SessionHost, open_host_without_window
from ..settings.config_watch import ConfigWatch
from ..settings.settings import Settings


@dataclass(frozen=True)
class _ModelKey:
    """Which model, as long as its file stays the same."""

    name: str
    spec: SpecOptions
    stamp: tuple[int, int] | None


@dataclass(frozen=True)
class _HostKey:
    """What a host was opened for."""

    choice: ComputeChoice
    model: _ModelKey
    draws: bool
    needs_picture: bool
    has_overlay: bool


class ReplayEngine:
    """What replays without a window share. A context manager; belongs to the thread that uses it first."""

    def __init__(self, console: Console) -> None:
        """Opens nothing."""
        self.console = console
        self.stopping = threading.Event()  # ends the replay at hand at its next frame, from any thread
        self._model: tuple[_ModelKey, ShownModel] | None = None
        self._host: tuple[_HostKey, SessionHost] | None = None
        self._open = contextlib.ExitStack()  # closes the host
        self._schedule = SampleSchedule()
        self._reference: tuple[ShownModel, CpuPath | None] | None = None  # what its masks are compared with

    def __enter__(self) -> "ReplayEngine":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def context(self) -> Context | None:
        """Where pictures are drawn and networks run, since a replay has needed one."""
        return self._host[1].compute.context if self._host else None

    def model(self, settings: Settings) -> ShownModel:
        """The model that settings name, read once. Raises as load_shown_model."""
        key = _model_key(settings)
        if self._model is None or self._model[0] != key:
            with self.console.download() as progress:
                self._model = key, session_model(settings, progress)
            key = _model_key(settings)  # there is a file now, if it has just been fetched
            self._model = key, self._model[1]
        return self._model[1]

    @contextlib.contextmanager
    def host(self, watch: ConfigWatch, draws: bool = False) -> Iterator[SessionHost]:
        """For one replay with the model of its settings; figures begin at 0. Raises UsageError, DeviceError.

        With what draws where pictures are wanted, by outputs of the settings or because it `draws` for others; masks
        alone are refined by it, and do without if there is none.
        """
        settings = watch.settings
        model, needs_picture = self.model(settings), bool(draws or settings.out or settings.cutouts)
        draws = needs_picture or bool(settings.masks and settings.refine)
        key = _HostKey(compute_of(settings), _model_key(settings), draws, needs_picture, settings.overlay)
        if self._host is None or self._host[0] != key:
            self._close_host()
            self._host = key, self._opened(key, model, watch)
        _, kept = self._host
        host = replace(kept, watch=watch, stats=RunStats(), observers=[])
        try:
            try:
                yield host
            finally:
                kept.compute = host.compute  # another one, if its context was lost
            if host.compute.context:
                host.compute.context.programs.write()  # for others, whatever becomes of this process
        except DeviceError:
            self._close_host()
            raise

    def sample(
        self, host: SessionHost, settings: Settings, frame: PictureFormat, every: int, frames: int | None
    ) -> None:
        """Have masks of the next recording compared with TensorFlow Lite's, if there is that: one of `every` frames.

        It has so many `frames`, as far as anybody knows.
        """
        host.sampler = None
        model = self.model(settings)
        offset = self._schedule.offset(frames, every) if every else None
        if offset is None or isinstance(model, FindingModel):
            return
        if self._reference is None or self._reference[0] is not model:
            self._close_reference()
            options = network_options_of(settings)
            self._reference = model, open_reference(model, frame, options.fit, options.preprocessing)
        if reference := self._reference[1]:
            host.sampler = MaskSampler(reference, frame, every, offset)

    def _opened(self, key: _HostKey, model: ShownModel, watch: ConfigWatch) -> SessionHost:
        opened = open_host_without_window
        try:
            host = self._open.enter_context(opened(key.draws, model, "replay", watch, self.console))
        except DeviceError:
            if key.needs_picture or watch.settings.backend == "gl":
                raise
            host = self._open.enter_context(opened(False, model, "replay", watch, self.console))
        host.kept = KeptNetwork()
        self._open.callback(host.forget)
        return host

    def _close_host(self) -> None:
        """What a device that has failed does not free any more is lost with its context."""
        self._host = None
        with contextlib.suppress(DeviceError):
            self._open.close()

    def _close_reference(self) -> None:
        if self._reference and self._reference[1]:
            self._reference[1].close()
        self._reference = None

    def close(self) -> None:
        """Free all; harmless when repeated."""
        self._close_host()
        self._close_reference()
        self._model = None


def _model_key(settings: Settings) -> _ModelKey:
    return _ModelKey(settings.model, spec_of(settings, settings.model), _stamp(model_path(settings.model)))


def _stamp(path: Path) -> tuple[int, int] | None:
    """What changes whenever a file does; None for none."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size
