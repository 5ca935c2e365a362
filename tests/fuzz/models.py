"""Runs a mutated model through reader, writer and TensorFlow Lite."""

from collections.abc import Sequence
from functools import cache
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.fuzz import model_mutations
from tests.fuzz.refusals import check_line
from tests.generators.profiles import random_graph
from tests.gpu_delegate.reading.test_opaque import ORIGINAL, WRITTEN
from tests.gpu_delegate.reading.test_sparsity import BLOCKS, model, sparse_array
from tests.model_files.model_builder import selfie_like
from tests.quantized.quantizer import Scheme, hybrid_twin, quantized_twin
from tests.quantized.single_ops import HIGH, LOW, model_of
from texelflow.gpu_delegate.base.errors import TexelflowError
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.model.graph import Graph, Tensor
from texelflow.gpu_delegate.reading.reader import read_model

REFUSED_LATE = "refused by CPU"
OPAQUE = (*WRITTEN, *ORIGINAL)


def small_models() -> Sequence[bytes]:
    """Models of a few kilobytes with most of the ops, some of them quantized."""
    networks = [random_graph(seed, "segmentation").build() for seed in (3, 9, 14)]
    return [selfie_like(1, size=(32, 16)), *networks, sparse_model(), *quantized_models()]


@cache
def quantized_models() -> Sequence[bytes]:
    """Twins of small networks in int8 and uint8, between floats and alone, and one with bytes for weights alone."""
    made = []
    for seed, scheme in enumerate((Scheme(), Scheme("uint8", False), Scheme(border="float32"))):
        sketch = random_graph(seed, "quantized")
        made.append(quantized_twin(sketch, [sketch.values(0)], scheme))
    ops = model_of(
        ("conv 3x3 strided relu6", "softmax", "mean", "resize bilinear", "arg max", "concatenation"), (1, 7, 9, 5)
    )
    noise_of = np.random.default_rng(0)
    samples = [[noise_of.uniform(LOW, HIGH, (1, 7, 9, 5)).astype(np.float32) for _ in ops.inputs]]
    return [*made, quantized_twin(ops, samples), hybrid_twin(ops)]


def opaque_models() -> Sequence[bytes]:
    """The same, and models with ops that only TensorFlow Lite knows."""
    return [*small_models(), *(build().build() for build in OPAQUE)]


def sparse_model() -> bytes:
    """A constant in compressed rows of blocks."""
    return model(sparse_array((4, 3, 3, 6), 7, "float16"), BLOCKS, half=True)


def is_taken(data: bytes) -> bool:
    """Whether the reader takes a model."""
    try:
        read_model(data)
    except TexelflowError:
        return False
    return True


def mutated_model(taken: Sequence[bytes], models: Sequence[bytes], random: Random) -> bytes:
    """One of the models that the reader takes, with parts of any."""
    return model_mutations.mutated(random.choice(taken), random.choice(models), random)


def run_model(data: bytes) -> str:
    """Read it, write it, run it with XNNPACK and without. Raises TexelflowError where the reader refuses it."""
    graph, how = read_model(data), "ran"
    for keep_all in (False, True):
        try:
            run_once(graph, keep_all)
        except TexelflowError as error:
            how = REFUSED_LATE
            check_line(error)
    return how


def run_once(graph: Graph, keep_all: bool) -> None:
    """One run on noise."""
    rng = np.random.default_rng(0)
    reference = Reference(graph, threads=1, keep_all_tensors=keep_all)
    shapes = zip(reference.input_shapes, reference.input_dtypes, strict=True)
    reference.run([rng.uniform(-2, 2, shape).astype(dtype) for shape, dtype in shapes])


def noise(graph: Graph, seed: int) -> list[npt.NDArray[Any]]:
    """Values for the inputs of any graph: all bytes, small integers, floats of -2 to 2."""
    rng = np.random.default_rng(seed)
    return [_drawn(graph.tensors[i], rng) for i in graph.inputs]


def _drawn(tensor: Tensor, rng: np.random.Generator) -> npt.NDArray[Any]:
    if tensor.dtype in ("int8", "uint8"):
        limits = np.iinfo(tensor.dtype)
        return rng.integers(limits.min, limits.max + 1, tensor.shape).astype(tensor.dtype)
    drawn = rng.uniform(-2, 2, tensor.shape)
    if tensor.dtype == "bool":
        return np.asarray(drawn > 0)
    return np.asarray(np.rint(4 * drawn) if tensor.dtype.startswith("int") else drawn, tensor.dtype)
