"""The CPU path with TensorFlow Lite: a frame in RAM to its mask or picture in RAM, with preprocessing in NumPy.

The fallback where there is no GPU, and what the GPU path is checked against; no OpenGL anywhere in it. A delegate may
run parts of a network on the GPU, or in the CPU's own code, where these cannot run the whole.
"""

import contextlib
import os
import sys
import threading
from collections.abc import Iterator

import numpy as np

from texelflow.gpu_delegate.base.errors import ModelError
from texelflow.gpu_delegate.cpu.array_pipe import AnyArray
from texelflow.gpu_delegate.cpu.delegation import ON_GPU, DelegateMaker, Delegation
from texelflow.gpu_delegate.cpu.reference import Reference, is_apart
from texelflow.gpu_delegate.cpu.rewriting import rewritten
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.model.layout import Precision
from texelflow.gpu_delegate.model.packing import Float32Array, in_file_type
from texelflow.gpu_delegate.model.quantization import dequantized
from texelflow.gpu_delegate.model.state_values import initial_state
from texelflow.gpu_delegate.programs.model_sharing import ModelSharing

from ...models.decoders.region import FrameRegion
from ...models.model_loading import FrameModel, input_values, preprocessing_for
from ...models.spec import ModelSpec, PictureSpec
from ...picture.picture import Picture, PictureFormat
from ...picture.preprocess import Fit, Floats, Preprocessing, Preprocessor

_REDIRECTION = threading.Lock()  # of the process's stderr, which there is one of


class CpuPath:
    """One model for pictures of one format."""

    precision: Precision = "fp32"  # of what runs on the CPU

    def __init__(
        self,
        model: FrameModel,
        frame: PictureFormat,
        fit: Fit = "stretch",
        threads: int | None = None,
        delegate: DelegateMaker | None = None,
        preprocessing: Preprocessing = "plain",
        as_read: bool = False,
        weights_cache: ModelSharing | None = None,
    ) -> None:
        """`delegate` and `weights_cache` are Reference's.

        With `as_read`, or a delegate, no pass changes the model, as what judges others needs it.

        Raises ModelError where TensorFlow Lite refuses the model, DeviceError where it is not installed, UsageError for
        what the cache does not take.
        """
        self.model, self.fit, self._preprocessing = model, fit, preprocessing_for(model, preprocessing)
        output = model.graph.tensors[model.graph.outputs[0]]
        self.scores: Floats = np.zeros(output.shape, np.float32)  # the network's last output (1, H, W, C)
        self.take(frame)
        graph = model.graph if as_read or delegate is not None else rewritten(model.graph)
        with contextlib.nullcontext() if is_apart(graph) else _silence():
            judges = as_read and delegate is None
            self._reference = Reference(graph, threads, delegate=delegate, weights_cache=weights_cache, judges=judges)
        self._states = _first_states(model.graph)  # inputs behind the picture

    @property
    def delegation(self) -> Delegation | None:
        """What runs on the GPU; None where nothing was meant to."""
        found = self.parts
        return found if found and found.places == ON_GPU else None

    @property
    def parts(self) -> Delegation | None:
        """What its delegate runs, there or in native code; None where it has none."""
        return self._reference.delegation

    @property
    def unshared(self) -> str:
        """Why it shares no packed weights although it was given a cache, in one line; else ""."""
        return self._reference.unshared

    @property
    def renderer(self) -> str:
        """What does the work, for tables."""
        found, on_cpu = self.parts, "TensorFlow Lite on the CPU"
        return f"{found.renderer} and {on_cpu}, {found.line}" if found and found.partitions else on_cpu

    def take(self, frame: PictureFormat) -> None:
        """Take pictures of another format from now on."""
        self._preprocessor = preprocessor_of(self.model, frame, self.fit, self._preprocessing)

    def begin_anew(self) -> None:
        """The next picture has nothing to do with those before."""
        self._states = _first_states(self.model.graph)
        self.expose_anew()

    def expose_anew(self) -> None:
        """The light of the next picture has nothing to do with that of those before."""
        self._preprocessor.begin_anew()

    def follow(self, picture: Picture) -> None:
        """A picture that the network need not see: the next one comes after it."""
        self._preprocessor.follow(picture)

    def image_to_tensor(self, picture: Picture) -> Floats:
        """The network's input (1, H, W, 3) for a picture, which comes after the one before it; steps if quantized."""
        return self._preprocessor.image_to_tensor(picture)

    def network(self, tensor: Floats) -> Floats:
        """The mask (H, W), or the picture (H, W, 4), on the network's own grid, 0 to 1, for its input tensor.

        Raises ModelError where TensorFlow Lite computes another shape than the file says: none, by a stride of 0.
        """
        graph = self.model.graph
        source, result = graph.tensors[graph.inputs[0]], graph.tensors[graph.outputs[0]]
        (output, *others) = self._reference.run((in_file_type(tensor, source), *self._states))
        self._states = others[len(others) - len(self._states) :]
        if output.shape != result.shape:
            told = f"{list(output.shape)} in TensorFlow Lite and {list(result.shape)} by the file"
            raise ModelError(f"{self.model.name}: its output is {told}, which is damaged; get it again")
        self.scores = dequantized(output, result)
        return meaning_of(self.scores, self.model.spec)

    def mask_of_region(self, picture: Picture, region: FrameRegion) -> Floats:
        """The mask (H, W) of a region of the last picture, on the network's own grid."""
        mask: Floats = self.network(self._preprocessor.region_to_tensor(picture, region.to_frame()))
        return mask

    def mask_to_frame(self, mask: Floats) -> Floats:
        """The mask (h, w), or the picture (h, w, 4), of the frame's size."""
        return self._preprocessor.mask_to_frame(mask)

    def run(self, picture: Picture) -> Floats:
        """The frame job: a picture to the mask (h, w), or to the network's picture (h, w, 4), of its upright size."""
        return self.mask_to_frame(self.network(self.image_to_tensor(picture)))

    def close(self) -> None:
        """As Reference.close."""
        self._reference.close()


def _first_states(graph: Graph) -> list[AnyArray]:
    """What is fed back, before the first picture; which outputs are lies behind all others in the same order."""
    return [initial_state(state) for state in graph.states]


def preprocessor_of(model: FrameModel, frame: PictureFormat, fit: Fit, preprocessing: Preprocessing) -> Preprocessor:
    """NumPy's way from pictures to a model's input, as that has it in memory, and from its masks to theirs."""
    values, size = input_values(model), model.output_size
    return Preprocessor(frame, model.input_size, fit, values.range, preprocessing, size, values.steps)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Keeps TensorFlow Lite's greeting, written past Python, from the terminal; what fails is raised, not written.

    One at a time: of two, the later one would take nowhere for the terminal, and leave it so.
    """
    with _REDIRECTION:
        if sys.stderr:  # programs without a console have none
            sys.stderr.flush()
        kept = os.dup(2)
        try:
            with open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), 2)
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def meaning_of(output_bhwc: Float32Array, spec: ModelSpec | PictureSpec) -> Floats:
    """The mask (H, W) or the picture (H, W, 4), 0 to 1, that a network's output (1, H, W, C) means."""
    return picture_of_output(output_bhwc, spec) if isinstance(spec, PictureSpec) else mask_of(output_bhwc, spec)


def picture_of_output(output_bhwc: Float32Array, spec: PictureSpec) -> Floats:
    """The picture (H, W, 4), 0 to 1, of three channels or four (network_picture.py has the definition)."""
    (low, high), values = spec.output_range, output_bhwc[0]
    picture = np.ones((*values.shape[:2], 4), np.float32)
    np.clip((values - np.float32(low)) * np.float32(1 / (high - low)), 0, 1, out=picture[..., : values.shape[2]])
    return picture


def mask_of(output_bhwc: Float32Array, spec: ModelSpec) -> Floats:
    """The mask (H, W) that a network's output (1, H, W, C) means; of several classes that of any of them.

    That is the sum of scores that add up to 1, else the greatest of them.
    """
    values, shown = output_bhwc[0], list(spec.group or (spec.channel,))
    if spec.activation == "softmax":
        powers = np.exp(values - values.max(-1, keepdims=True))
        return np.asarray(powers[..., shown].sum(-1) / powers.sum(-1), np.float32)
    if not spec.group:
        mask: Floats = values[..., spec.channel]
    else:
        chosen = values[..., shown]
        mask = chosen.sum(-1) if spec.adds else chosen.max(-1)
    if spec.activation == "sigmoid":
        with np.errstate(over="ignore"):  # exp of a large number is infinite, and its inverse the 0 that is right
            return np.asarray(1 / (1 + np.exp(-mask)), np.float32)
    return mask


def class_scores(output_bhwc: Float32Array, spec: ModelSpec) -> Floats:
    """The scores (H, W, C) of all classes that a network's output (1, H, W, C) means, as a copy."""
    values = output_bhwc[0][..., spec.channel :] if spec.has_own_colors else output_bhwc[0]
    if spec.activation == "sigmoid":
        with np.errstate(over="ignore"):
            return np.asarray(1 / (1 + np.exp(-values)), np.float32)
    if spec.activation == "softmax":
        powers = np.exp(values - values.max(-1, keepdims=True))
        return np.asarray(powers / powers.sum(-1, keepdims=True), np.float32)
    return np.array(values, np.float32)
