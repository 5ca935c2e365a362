"""Keeps a network with its way in from one recording to the next, if the next one's frames fit it.

So the network is compiled and its weights are uploaded once for many recordings.
"""

import contextlib
from collections.abc import Generator
from dataclasses import dataclass, field

from texelflow.gpu_delegate.base.errors import DeviceError

from ..frame.finding.network_paths import FindingPath, NetworkPath, path_in_steps
from ..frame.inference.backends import ComputeBackend
from ..frame.inference.network_options import NetworkOptions
from ..models.finding_loading import ShownModel
from ..models.finding_model import FindingModel
from ..picture.picture import PictureFormat


@dataclass(frozen=True)
class _Kind:
    """What it was made for; it can go on with all that is equal."""

    compute: ComputeBackend
    model: ShownModel = field(compare=False)  # the same object, for comparing graphs takes long
    options: NetworkOptions
    kept: int


class KeptNetwork:
    """Keeps one network at most, while nobody uses it. Belongs to the thread of the context."""

    def __init__(self) -> None:
        self._kept: tuple[_Kind, PictureFormat, NetworkPath] | None = None

    def in_steps(
        self, compute: ComputeBackend, model: ShownModel, frame: PictureFormat, options: NetworkOptions, kept: int = 1
    ) -> Generator[tuple[int, int], None, NetworkPath]:
        """As path_in_steps, but with what is kept where that is of the same kind. Who is done gives it to `keep`.

        Raises TexelflowError.
        """
        if self._kept and not self._fits(_Kind(compute, model, options, kept)):
            self.release()
        if self._kept is None:
            path = yield from path_in_steps(compute, model, frame, options, kept)
            return path
        _, format, path = self._kept
        if format != frame:
            path.take(frame)  # if it raises all is as it was
        self._kept = None
        if isinstance(path, FindingPath):
            path.renew()
        else:
            path.begin_anew()
        return path

    def keep(
        self,
        path: NetworkPath,
        compute: ComputeBackend,
        model: ShownModel,
        frame: PictureFormat,
        options: NetworkOptions,
        kept: int,
    ) -> None:
        """Take it back, as it was made; a network that has variables is freed instead, which not all begin anew."""
        self.release()
        if not isinstance(model, FindingModel) and model.remembers and not model.graph.states:
            path.release()
        else:
            self._kept = _Kind(compute, model, options, kept), frame, path

    def release(self) -> None:
        """Free what is kept, if anything is: in the context in which it was made, or that is lost."""
        if self._kept:
            (_, _, path), self._kept = self._kept, None
            with contextlib.suppress(DeviceError):
                path.release()

    def _fits(self, kind: _Kind) -> bool:
        """Whether what is kept is of that kind."""
        assert self._kept
        mine = self._kept[0]
        return mine.model is kind.model and mine == kind
