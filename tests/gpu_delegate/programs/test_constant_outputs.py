"""Constants that are outputs of a graph have their values on the GPU and in native code."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import texelflow
from tests.helpers.markers import exhaustive, one_in
from tests.helpers.native import native_networks
from tests.model_files.model_builder import ModelBuilder
from texelflow.gpu_delegate.base.disk_cache import DiskCache
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.device.device import SOFTWARE
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.plan.memory.memory_options import MemoryOptions
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.saving.saved_graph import restore_graph, save_graph
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.runtime import Program
from texelflow.gpu_delegate.targets.glsl.compiled_graph import CompiledGraph, compile_graph
from texelflow.gpu_delegate.targets.llvm.compiler import native_target
from texelflow.gpu_delegate.targets.llvm.image import image_of, parse_image
from texelflow.gpu_delegate.targets.llvm.native_program import compile_native
from texelflow.gpu_delegate.targets.llvm.native_runtime import NativeNetwork

Values = npt.NDArray[Any]

SHAPE = (1, 3, 5, 6)
X = np.random.default_rng(2).standard_normal(SHAPE).astype(np.float32)
FLOAT_BYTES = 4
COPY = """
#version 430
layout(local_size_x = 1) in;
layout(std430, binding = 4) readonly buffer Values { float values[]; };
layout(std430, binding = 5) buffer Found { float found[]; };
void main() { found[gl_GlobalInvocationID.x] = values[gl_GlobalInvocationID.x]; }
"""
CONSTANTS: Mapping[str, tuple[npt.ArrayLike, str, Mapping[str, Any]]] = MappingProxyType(
    {
        "float32": ([1.5, -2, np.inf, np.nan, 3e-40], "float32", {}),
        "float16": ([[0.1], [-7.0]], "float16", {}),
        "int32": (5, "int32", {}),
        "int64": ([1, -(1 << 40), (1 << 24) - 1], "int64", {}),
        "int32 of any size": ([[(1 << 24) + 1, -(1 << 31)]], "int32", {}),
        "int64 of any size": ((1 << 63) - 1, "int64", {}),
        "bool": ([[True, False, True]], "bool", {}),
        "int8": ([-128, 4, 127], "int8", {"scales": (0.1,), "zero_points": (4,)}),
        "int8 by channel": ([-128, 4, 127], "int8", {"scales": (0.1, 0.2, 0.3), "zero_points": (0, 0, 0)}),
        "uint8 without a scale": ([0, 4, 255], "uint8", {}),
        "a map of three slices": (np.arange(180).reshape(2, 3, 3, 10), "float32", {}),
    }
)


def constant(model: ModelBuilder, kind: str) -> int:
    values, dtype, scale = CONSTANTS[kind]
    array = np.asarray(values, dtype)
    return model.tensor(array.shape, dtype, array.tobytes(), **scale)


def beside(kind: str) -> bytes:
    """A sum, and behind it and before it a constant that nothing reads."""
    model = ModelBuilder()
    total = model.op("ADD", [model.input(SHAPE), model.constant(np.ones(SHAPE))], SHAPE)
    model.output(constant(model, kind), total, constant(model, kind))
    return model.build()


def read_too(shape: tuple[int, ...] = SHAPE, alone: bool = False) -> bytes:
    """x + k, and k itself, or k alone."""
    model = ModelBuilder()
    k = model.constant(np.arange(np.prod(shape)).reshape(shape))
    total = model.op("ADD", [model.input(SHAPE), k], SHAPE)
    model.output(*([] if alone else [total]), k)
    return model.build()


MODELS: Mapping[str, bytes] = MappingProxyType(
    {
        **{kind: beside(kind) for kind in CONSTANTS},
        "a map that is read": read_too(),
        "a vector that is read": read_too((6,)),
        "alone": read_too(alone=True),
    }
)
OPTIONS = MappingProxyType(
    {
        "fused": CompileOptions(),
        "all kept": CompileOptions(fuse=False, keep_all=True),
        "fp16": CompileOptions(precision="fp16"),
        "as little memory as can be": CompileOptions(memory=MemoryOptions(keeps_inputs=False)),
    }
)


def expected(graph: Graph) -> list[Values]:
    reference = Reference(graph, keep_all_tensors=True)
    reference.run(X)
    return [reference.tensor(tensor) for tensor in graph.outputs]


def outputs(program: Program) -> list[Values]:
    """Of the second of two runs."""
    graph = program.compiled.source
    for _ in range(2):
        program.write(graph.inputs[0], X)
        program.run()
    return [program.read(tensor) for tensor in graph.outputs]


def check(found: list[Values], graph: Graph, wanted: list[Values]) -> None:
    for number, values, right in zip(graph.outputs, found, wanted, strict=True):
        if graph.tensors[number].is_constant:
            np.testing.assert_array_equal(values, right, strict=True)
        else:
            np.testing.assert_allclose(values, right, rtol=2e-3)


@pytest.mark.gl
@one_in(3, "name", MODELS)
def test_on_the_gpu(name: str, context: Context) -> None:
    graph = read_model(MODELS[name])
    wanted = expected(graph)
    for options in OPTIONS.values():
        with Program(context, compile_graph(graph, SOFTWARE, options)) as program:
            check(outputs(program), graph, wanted)


@exhaustive
def test_in_native_code() -> None:
    graphs = {name: read_model(data) for name, data in MODELS.items()}
    for keep_all in (False, True):
        for name, network in native_networks(graphs, keep_all=keep_all).items():
            network.run(X)
            check(list(network.run(X)), graphs[name], expected(graphs[name]))


def restored(compiled: CompiledGraph, source: Graph) -> CompiledGraph:
    found = restore_graph(save_graph(compiled), source)
    assert found is not None
    return found


@pytest.mark.gl
def test_of_what_was_saved(context: Context, tmp_path: Path) -> None:
    for kind in ("int8", "a map of three slices"):
        graph = read_model(beside(kind))
        with Program(context, restored(compile_graph(graph, SOFTWARE), graph)) as program:
            check(outputs(program), graph, expected(graph))
        for _ in range(2):  # compiled, and from the cache
            network = NativeNetwork.load(graph, 1, cache=DiskCache(tmp_path))
            check(list(network.run(X)), graph, expected(graph))
            network.close()


def test_saved_constants_of_other_sizes_are_refused() -> None:
    graph = read_model(beside("int8"))
    compiled, program = compile_graph(graph, SOFTWARE), compile_native(graph, native_target())
    wrong_texels: list[Values] = [
        np.zeros((2, 4), np.float32),
        np.zeros((1, 2), np.float32),
        np.zeros((1, 4), np.int32),
    ]
    for texels in wrong_texels:
        wrong = replace(compiled, constants=dict.fromkeys(compiled.constants, texels))
        assert restore_graph(save_graph(wrong), graph) is None
    image = image_of(program, [b"co", b"de"], ())
    assert parse_image(image.to_bytes(), lambda _: image.weights) is not None
    for constants in ({99: 0}, dict.fromkeys(image.constants, image.weights.size - 1)):
        assert parse_image(replace(image, constants=constants).to_bytes(), lambda _: image.weights) is None


@pytest.mark.gl
def test_of_programs_that_share_weights(tmp_path: Path) -> None:
    """Whose plans keep no weights, and whose memory is used in turns."""
    path = tmp_path / "constants.tflite"
    path.write_bytes(MODELS["a map of three slices"])
    model, cache = texelflow.Model.load(path), texelflow.WeightsCache()
    programs = [texelflow.Program(model, weights_cache=cache) for _ in range(2)]
    cache.finalize_soft()
    programs.append(texelflow.Program(model, weights_cache=cache))
    wanted = expected(model._graph)
    for program in programs * 2:
        program.write(model.inputs[0], X)
        program.run()
        check([program.read(tensor) for tensor in model.outputs], model._graph, wanted)
    for program in programs:
        program.close()


@pytest.mark.gl
def test_shaders_find_it_where_it_says(tmp_path: Path) -> None:
    path = tmp_path / "constants.tflite"
    path.write_bytes(MODELS["alone"])
    with texelflow.Program(texelflow.Model.load(path)) as program:
        program.write(program.model.inputs[0], X)
        program.run()
        program.bind_storage(program.model.outputs[0], 4)
        size_bytes = program.output.size_bytes
        target = program.context.buffer(reserve=size_bytes)
        target.bind_to_storage_buffer(5)
        program.context.compute_shader(COPY).run(size_bytes // FLOAT_BYTES)
        slices = np.frombuffer(target.read(), np.float32).reshape(-1, *SHAPE[1:3], 4)
        found = np.concatenate(slices, -1)[..., : SHAPE[3]]
        np.testing.assert_array_equal(found, np.arange(found.size).reshape(SHAPE[1:]))
