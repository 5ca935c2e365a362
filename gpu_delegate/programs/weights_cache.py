"""WeightsCache: instances of one model share packed weights and compiled programs; what users see of it."""

from ..base.errors import UsageError
from .model_sharing import ModelSharing


class WeightsCache:
    """Several instances of one model share packed weights and compiled programs: each takes its tensors alone.

        cache = texelflow.WeightsCache()
        segmenters = [texelflow.Segmenter("selfie", weights_cache=cache) for _ in range(2)]
        cache.finalize_soft()
        segmenters.append(texelflow.Segmenter("selfie", weights_cache=cache))
        cache.finalize_hard()  # no further one is to come
        masks = [segment(frame) for segment in segmenters]
        print(cache.weights_bytes, cache.arena_bytes)

    Until it is finalized, several models may be added, whose equal layers share weights; nothing may run before that.
    After finalize_soft() further instances of the same models may be made, after finalize_hard() none. What instances
    share is freed with the last one that has it, in whichever order they go. Instances may be on several threads.
    """

    def __init__(self) -> None:
        self._sharing = ModelSharing()

    def finalize_soft(self) -> None:
        """From now on inferences may be made, and further instances of the models that are in it, but of no others.

        Raises UsageError after finalize_hard(), and if no instance has been made.
        """
        self._sharing.finalize_soft()

    def finalize_hard(self) -> None:
        """From now on inferences may be made, and no instances; what only further instances would need is freed.

        Raises UsageError if no instance has been made.
        """
        self._sharing.finalize_hard()

    @property
    def weights_bytes(self) -> int:
        """Of the weights that instances share, in OpenGL."""
        return self._sharing.weights_bytes

    @property
    def arena_bytes(self) -> int:
        """Of the memory that instances use in turns, on one thread of OpenGL and in native code, for what is inside."""
        return self._sharing.arena_bytes

    def __reduce__(self) -> str:
        """There are no copies. Raises UsageError."""
        raise UsageError("a WeightsCache cannot be copied or pickled: it is what instances of one process share")

    def __repr__(self) -> str:
        models = ", ".join(self._sharing.names) or "no models"
        return f"<texelflow.WeightsCache {self._sharing.state.value}: {models}>"


def checked_cache(weights_cache: object) -> ModelSharing | None:
    """What is shared by the argument of that name, which the program gives as that itself. Raises UsageError."""
    if weights_cache is None or isinstance(weights_cache, ModelSharing):
        return weights_cache
    if isinstance(weights_cache, WeightsCache):
        return weights_cache._sharing
    given = "the class: WeightsCache() makes one" if weights_cache is WeightsCache else type(weights_cache).__name__
    raise UsageError(f"weights_cache is a WeightsCache, not {given}")
