"""Switches models: another one is loaded and compiled while the present one runs, and then takes over."""

from collections.abc import Callable

from texelflow.gpu_delegate.base.errors import TexelflowError

from ..models.finding_loading import ShownModel
from ..models.spec import SpecOptions
from ..threads import ThreadCall
from ..tracking.finder import FoundKind
from .model_stages import ModelStages, StageSteps, SwitchableStages


class ModelSwitch:
    """Brings the model that is wanted onto the screen. Belongs to the context's thread; files are read on another."""

    def __init__(
        self,
        stages: SwitchableStages,
        spec: SpecOptions,
        load: Callable[[str, SpecOptions], ShownModel],
        steps_of: Callable[[ShownModel], StageSteps],
        companions: tuple[FoundKind, ...] = (),
    ) -> None:
        """`spec` is what was said of the model that runs, and `companions` what is found beside it; `steps_of` makes
        the stages of one that `load` has read.
        """
        self._running = self._wanted = stages.name, spec, companions
        self._stages, self._load, self._steps_of = stages, load, steps_of
        self._loading: ThreadCall[ShownModel] | None = None

    @property
    def wanted(self) -> str:
        """The name of the model that was asked for last."""
        return self._wanted[0]

    @property
    def busy(self) -> bool:
        """Whether another model is on its way."""
        return self._loading is not None or self._stages.changing

    def want(self, name: str, spec: SpecOptions, companions: tuple[FoundKind, ...] = ()) -> None:
        """Have a model by its name or path, with what is to be found beside it; it comes later, and what was wanted
        before does not.
        """
        if (name, spec, companions) == self._wanted:
            return
        self._wanted = name, spec, companions
        self._stages.give_up()
        is_there = self._wanted == self._running
        self._loading = None if is_there else ThreadCall(lambda: self._load(name, spec))

    def advance(self) -> ModelStages | None:
        """Work on it for some milliseconds; the new stages in the moment when they take over.

        Raises TexelflowError if there is no such model, or it does not run here: the one that runs stays until
        another is wanted.
        """
        try:
            if self._loading and self._loading.ended:
                self._stages.change(self._steps_of(self._loading.answer()), self.wanted)
                self._loading = None
            if stages := self._stages.advance():
                self._running = self._wanted
            return stages
        except TexelflowError:
            self._loading = None
            raise
