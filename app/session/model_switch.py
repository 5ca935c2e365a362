"""The name of a model goes in; it is loaded and compiled while another one runs, and then takes over."""

import threading
from collections.abc import Callable

from texelflow.gpu_delegate.errors import TexelflowError

from ..models.loading import SegmentationModel, load_segmentation
from .model_stages import Scene, Scenes, Steps


class ModelSwitch:
    """Brings the model that is wanted onto the screen. Belongs to the context's thread; files are read on another."""

    def __init__(self, scenes: Scenes, steps_of: Callable[[SegmentationModel], Steps]) -> None:
        """`steps_of` makes the scene of a model."""
        self.wanted = scenes.name
        self._scenes, self._steps_of = scenes, steps_of
        self._loading: _Loading | None = None

    @property
    def busy(self) -> bool:
        """Whether another model is on its way."""
        return self._loading is not None or self._scenes.changing

    def want(self, name: str) -> None:
        """Have a model by its name or path; it comes later, and what was wanted before does not."""
        if name == self.wanted:
            return
        self.wanted = name
        self._scenes.give_up()
        is_there = name == self._scenes.name
        self._loading = None if is_there else _Loading(name)

    def advance(self) -> Scene | None:
        """Work on it for some milliseconds; the new scene in the moment when it takes over.

        Raises TexelflowError if there is no such model, or it does not run here: the one that runs stays until
        another is wanted.
        """
        try:
            if self._loading and (model := self._loading.model()):
                self._scenes.change(self._steps_of(model), self.wanted)
                self._loading = None
            return self._scenes.advance()
        except TexelflowError:
            self._loading = None
            raise


class _Loading:
    """A model that is read, or fetched, on a thread of its own."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._model: SegmentationModel | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._load, name="model", daemon=True)
        self._thread.start()

    def model(self) -> SegmentationModel | None:
        """The model if it is there by now. Raises what loading it raised."""
        if self._thread.is_alive():
            return None
        if self._error:
            raise self._error
        return self._model

    def _load(self) -> None:
        try:
            self._model = load_segmentation(self._name)
        except BaseException as error:
            self._error = error
