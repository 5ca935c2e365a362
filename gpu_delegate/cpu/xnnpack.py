"""XNNPACK delegates of a runtime, several of which share one copy of packed weights.

This is TensorFlow Lite's own weights cache, which some runtimes' libraries export to C alone. Its options are a struct
that differs between versions: a child process tries ours once for each library (xnnpack_probe.py).
"""

import ctypes
import sys
import weakref
from collections.abc import Callable, Sequence
from functools import lru_cache
from threading import RLock
from typing import Any

from ..base.errors import DeviceError
from .interpreter_module import OLDER
from .runtime_trial import package_of, struct_layouts, trial_of

_PROGRAM = f"from {__package__}.xnnpack_probe import main; main()"
_ROOM_BYTES = 232  # for fields of other versions
_PACKED = 4  # halves become floats, and channels are filled up; of what is reserved only pages in use take memory
_LEAST_BYTES = 1 << 20
_SIGNED, _UNSIGNED = 1, 2  # flags: 8-bit operators of either kind
_PREFIX = "TfLiteXNNPackDelegate"


class XnnpackOptions(ctypes.Structure):
    """TfLiteXNNPackDelegateOptions of TensorFlow Lite 2.14."""

    _fields_ = (
        ("num_threads", ctypes.c_int32),
        ("flags", ctypes.c_uint32),
        ("weights_cache", ctypes.c_void_p),
        ("rest", ctypes.c_ubyte * _ROOM_BYTES),
    )


class XnnpackLibrary:
    """The functions of a runtime's library that the cache needs."""

    def __init__(self, module: Any) -> None:
        """Raises DeviceError for a library that does not export them."""
        try:
            library = ctypes.CDLL(module._interpreter_wrapper.__file__)
            address, options = ctypes.c_void_p, ctypes.POINTER(XnnpackOptions)
            self.default_options = _function(library, "OptionsDefault", XnnpackOptions)
            self.create = _function(library, "Create", address, options)
            self.delete = _function(library, "Delete", None, address)
            self.create_cache = _function(library, "WeightsCacheCreateWithSize", address, ctypes.c_size_t)
            self.delete_cache = _function(library, "WeightsCacheDelete", None, address)
            self.finalize_soft = _function(library, "WeightsCacheFinalizeSoft", ctypes.c_bool, address)
            self.finalize_hard = _function(library, "WeightsCacheFinalizeHard", ctypes.c_bool, address)
        except (AttributeError, OSError) as error:
            raise DeviceError(
                f"{package_of(module.__name__)} exports no weights cache of XNNPACK, so each instance on the CPU packs "
                "weights of its own; tflite-runtime 2.14 has one"
            ) from error


def _function(library: ctypes.CDLL, name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    function = library[_PREFIX + name]  # not an attribute: that would be one object for all
    function.restype, function.argtypes = result, arguments
    return function


class XnnpackCache:
    """Weights that XNNPACK has packed, keyed by their content; it has to be closed after all its delegates.

    Interpreters are made and finalized with `lock` held.
    """

    def __init__(self, library: XnnpackLibrary, model_bytes: int) -> None:
        """For a model of that size: XNNPACK fails where a weight is larger than what it makes a cache grow by."""
        self.lock = RLock()
        self._library, self._is_final = library, False
        self._address = library.create_cache(_PACKED * model_bytes + _LEAST_BYTES)
        if not self._address:
            raise DeviceError("XNNPACK has no memory for a weights cache")

    def delegate(self, threads: int) -> "XnnpackDelegate":
        """For one interpreter."""
        return XnnpackDelegate(self._library, self._address, threads)

    def finalize(self, is_hard: bool) -> None:
        """Interpreters may run, and hit what is packed; after `is_hard` none can be made. The first call alone counts.

        XNNPACK does not trim a cache that it has finalized softly.
        """
        with self.lock:
            if self._is_final:
                return
            finish = self._library.finalize_hard if is_hard else self._library.finalize_soft
            if not finish(self._address):
                raise DeviceError("XNNPACK cannot finalize its weights cache")
            self._is_final = True

    def close(self) -> None:
        """Free it; a second call does nothing."""
        address, self._address = self._address, None
        if address:
            self._library.delete_cache(address)


class XnnpackDelegate:
    """What an Interpreter takes as one of its delegates, and frees when it has gone itself: it drops it last."""

    def __init__(self, library: XnnpackLibrary, cache_address: int | None, threads: int, flags: int = 0) -> None:
        options = library.default_options()
        options.num_threads, options.weights_cache = threads, cache_address
        options.flags |= flags
        self._address = library.create(ctypes.byref(options))
        if not self._address:
            raise DeviceError("XNNPACK cannot make a delegate")
        self._actions: list[Callable[[], object]] = []
        finalizer = weakref.finalize(self, _free, library, self._address, self._actions)
        finalizer.atexit = False  # interpreters may be there then

    def when_freed(self, action: Callable[[], object]) -> None:
        """Have something done behind the freeing."""
        self._actions.append(action)

    def _get_native_delegate_pointer(self) -> int:
        address: int = self._address
        return address


def _free(library: XnnpackLibrary, address: int, actions: Sequence[Callable[[], object]]) -> None:
    library.delete(address)
    for action in actions:
        action()


def delegate_of_bytes(module: Any, threads: int) -> XnnpackDelegate | None:
    """One that takes 8-bit operators, too, where the runtime's own leaves them to kernels ten times as slow."""
    if module.__name__ != OLDER:
        return None
    try:
        return XnnpackDelegate(XnnpackLibrary(module), None, threads, _SIGNED | _UNSIGNED)
    except DeviceError:
        return None


@lru_cache(maxsize=4)
def why_not_shared(module: str) -> str:
    """Why interpreters of a loaded module cannot share weights, in one line; "" where they can."""
    try:
        XnnpackLibrary(sys.modules[module])
    except DeviceError as error:
        return str(error)
    found = trial_of(module, _PROGRAM, struct_layouts({XnnpackOptions.__name__: XnnpackOptions}))
    return found and f"the weights cache of XNNPACK does not work with this {package_of(module)}: {found}"
