"""Objects of other packages that give their memory by one protocol alone."""

from typing import Any

import numpy.typing as npt


class OnlyDlpack:
    """Gives its memory by DLPack alone, or says that it lies on a device."""

    def __init__(self, values: npt.NDArray[Any], device: int = 1) -> None:
        self._values, self._device = values, device

    def __dlpack__(self, **options: Any) -> Any:
        return self._values.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device, 0
