"""Whole programs: the selfie models on a real frame, changed networks of their family, memory, fall-backs, release."""

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.engine import DEVICES, Floats, on_cpu, on_gpu, run, worst
from tests.helpers.living import living
from tests.helpers.markers import exhaustive, on_both_apis, one_in
from tests.model_files.model_builder import CHANGED, ODD_BLOCKS, SELFIE, Block, selfie_like
from tests.model_files.sketch import Sketch
from texelflow.app.picture.picture import rgba_format, rgba_picture
from texelflow.app.picture.preprocess import Preprocessor
from texelflow.gpu_delegate.base.errors import DeviceError
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.device.device import HARDWARE, SOFTWARE
from texelflow.gpu_delegate.model.packing import phwc4
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.plan.memory.memory_options import MemoryOptions
from texelflow.gpu_delegate.reading.reader import load_model, read_model
from texelflow.gpu_delegate.targets.gl import opengl
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.gl_buffers import write_buffer
from texelflow.gpu_delegate.targets.gl.runtime import Program, TensorRange, device_of
from texelflow.gpu_delegate.targets.glsl.compiled_graph import accesses_of, compile_graph

MODELS = ("selfie_model", "selfie_landscape_model")
TOLERANCE = 1e-4
MOST_DISPATCHES = 50
OF_PROGRAMS = ("Buffer", "Texture", "Program")  # kinds of objects that each program has


Compile = Callable[..., Program]


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> Path:
    path: Path = request.getfixturevalue(request.param)
    return path


@pytest.fixture(scope="module")
def _programs() -> Iterator[dict[tuple[object, ...], Program]]:
    programs: dict[tuple[object, ...], Program] = {}
    yield programs
    for program in programs.values():
        program.release()


@pytest.fixture
def program_of(context: Context, _programs: dict[tuple[object, ...], Program]) -> Compile:
    """Programs of models (paths or names of CHANGES), compiled once for all tests, since that takes seconds."""

    def program(name: Path | str, device: str = "software", fuse: bool = True, keep_all: bool = False) -> Program:
        key = (name, device, fuse, keep_all)
        if key not in _programs:
            graph = load_model(name) if isinstance(name, Path) else read_model(CHANGES[name])
            _programs[key] = Program(
                context, compile_graph(graph, DEVICES[device], CompileOptions(fuse=fuse, keep_all=keep_all))
            )
        return _programs[key]

    return program


def network_input(frame_rgba: npt.NDArray[np.uint8], shape: tuple[int, ...]) -> Floats:
    _, height, width, _ = shape
    size = (frame_rgba.shape[1], frame_rgba.shape[0])
    return Preprocessor(rgba_format(size), (width, height)).image_to_tensor(rgba_picture(frame_rgba))


def random_inputs(model: bytes, seed: int = 1) -> list[Floats]:
    graph = read_model(model)
    rng = np.random.default_rng(seed)
    return [rng.random(graph.tensors[tensor].shape, np.float32) for tensor in graph.inputs]


@one_in(2, ("name", "fuse"), [(MODELS[0], True), (MODELS[1], False)], ids=["fused", "unfused"])
def test_every_stored_tensor_agrees_on_a_real_frame(
    program_of: Compile, name: str, frame_rgba: npt.NDArray[np.uint8], fuse: bool, request: pytest.FixtureRequest
) -> None:
    model: Path = request.getfixturevalue(name)
    graph = load_model(model)
    frame = network_input(frame_rgba, graph.tensors[graph.inputs[0]].shape)
    reference = Reference(graph, keep_all_tensors=True)
    (mask,) = reference.run(frame)
    assert 0.1 < mask.mean() < 0.9, "the frame shows people"
    program = program_of(model, fuse=fuse, keep_all=True)
    (found,) = run(program, [frame])
    compared = [tensor for tensor in program.compiled.stored if tensor in graph.tensors]
    errors = {
        graph.tensors[tensor].name: worst([program.read(tensor)], [np.asarray(reference.tensor(tensor))])
        for tensor in compared
    }
    assert float(np.abs(found - mask).max()) <= TOLERANCE
    assert {name: error for name, error in errors.items() if not error <= TOLERANCE} == {}
    assert len(compared) >= (15 if fuse else 80)


def test_few_dispatches(context: Context, model: Path) -> None:
    device = device_of(context)
    assert len(compile_graph(load_model(model), device).kernels) <= MOST_DISPATCHES
    assert len(compile_graph(load_model(model), device, CompileOptions(fuse=False)).kernels) > MOST_DISPATCHES


def test_memory_is_used_again_without_changing_anything(
    program_of: Compile, selfie_model: Path, frame_rgba: npt.NDArray[np.uint8]
) -> None:
    shared, apart = program_of(selfie_model), program_of(selfie_model, fuse=True, keep_all=True)
    assert shared.compiled.plan.total_bytes < apart.compiled.plan.total_bytes
    frame = network_input(frame_rgba, shared.compiled.graph.tensors[shared.compiled.graph.inputs[0]].shape)
    (first,), (second,) = (run(program, [frame]) for program in (shared, apart))
    assert first.tobytes() == second.tobytes()


def test_two_runs_give_the_same_bytes(
    program_of: Compile, selfie_model: Path, frame_rgba: npt.NDArray[np.uint8]
) -> None:
    program = program_of(selfie_model)
    frame = network_input(frame_rgba, program.compiled.graph.tensors[program.compiled.graph.inputs[0]].shape)
    (first,) = run(program, [frame])
    (other,) = run(program, [frame[:, ::-1]])
    (second,) = run(program, [frame])
    assert first.tobytes() == second.tobytes()
    assert np.abs(first - other).max() > 0.1


ANOTHER_ORDER = (Block(8, 24, stride=2), Block(8, 24, squeezed=6), Block(20, 40, 5, 2, "HARD_SWISH"), Block(20, 60))
CHANGES = {
    "odd channels": selfie_like(1),
    "mean, fused activations": selfie_like(2, global_pool="MEAN", fused=True),
    "wide picture": selfie_like(3, replace(CHANGED, size=(120, 40), blocks=ODD_BLOCKS[:4])),
    "other blocks": selfie_like(4, replace(CHANGED, size=(64, 48), stem=7, blocks=ANOTHER_ORDER, head=21)),
    "selfie, small": selfie_like(5, SELFIE, size=(64, 32)),
    "float32 weights": selfie_like(6, half=False, head=64),
    "sizes that halve unevenly": selfie_like(7, replace(CHANGED, size=(62, 46), blocks=ODD_BLOCKS[:4])),
    "small": selfie_like(8, replace(CHANGED, size=(36, 28), stem=5, blocks=ODD_BLOCKS[:2], head=11)),
}


ON_OTHER_DEVICES = (
    ("odd channels", "hardware"),
    ("small", "baked"),
    ("small", "eager"),
    ("other blocks", "hardware"),
    ("mean, fused activations", "eager"),
)


@one_in(7, ("name", "device"), [*((name, "software") for name in CHANGES), *ON_OTHER_DEVICES])
def test_changed_networks_agree(program_of: Compile, name: str, device: str) -> None:
    model = CHANGES[name]
    inputs = random_inputs(model)
    wanted = on_cpu(model, inputs)
    assert wanted[0].std() > 0.01, "a constant mask would prove nothing"
    assert worst(run(program_of(name, device), inputs), wanted) <= TOLERANCE


def test_changed_network_gains_from_fusion_as_selfie_does() -> None:
    graph = read_model(CHANGES["odd channels"])
    fused, unfused = (compile_graph(graph, SOFTWARE, CompileOptions(fuse=fuse)) for fuse in (True, False))
    assert len(fused.kernels) * 2 < len(unfused.kernels)
    assert fused.plan.total_bytes < unfused.plan.total_bytes


@exhaustive
def test_large_tensors_are_read_as_storage(context: Context) -> None:
    model = CHANGES["small"]
    inputs = random_inputs(model)
    usual, small = (
        compile_graph(read_model(model), HARDWARE.with_limits(texture_buffer_texels=n)) for n in (1 << 16, 64)
    )
    assert not any("storage" in kernel.fetches for kernel in usual.kernels)
    assert any("storage" in kernel.fetches for kernel in small.kernels)
    assert any({*kernel.fetches} == {"storage", "texture"} for kernel in small.kernels)
    assert worst(on_gpu(context, small, inputs), on_cpu(model, inputs)) <= TOLERANCE


@exhaustive
@on_both_apis
def test_everything_as_storage(context: Context) -> None:
    model = CHANGES["small"]
    inputs = random_inputs(model)
    compiled = compile_graph(read_model(model), HARDWARE.with_limits(texture_buffer_texels=0))
    assert all({*kernel.fetches} <= {"storage"} for kernel in compiled.kernels)
    assert worst(on_gpu(context, compiled, inputs), on_cpu(model, inputs)) <= TOLERANCE


@exhaustive
def test_without_multi_bind(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    model = CHANGES["small"]
    inputs = random_inputs(model)
    with Program(context, compile_graph(read_model(model), HARDWARE.with_limits(texture_buffer_texels=64))) as program:
        monkeypatch.setattr(context.gl, "multi_bind", True)
        (together,) = run(program, inputs)
        (nothing,) = run(program, [np.zeros_like(inputs[0])])
        monkeypatch.setattr(context.gl, "multi_bind", False)
        (one_by_one,) = run(program, inputs)
    assert together.tobytes() == one_by_one.tobytes() != nothing.tobytes()


def test_running_reads_nothing_back(context: Context, program_of: Compile) -> None:
    program = program_of("small")
    program.write(program.compiled.graph.inputs[0], random_inputs(CHANGES["small"])[0])
    before = context.readback.calls
    program.run()
    assert context.readback.calls == before
    program.read(program.compiled.graph.outputs[0])
    assert context.readback.calls == before + 1


@exhaustive
@pytest.mark.parametrize("memory", [MemoryOptions("arena"), MemoryOptions("naive")], ids=lambda each: each.mode)
@on_both_apis
def test_buffers_are_as_large_as_planned(context: Context, memory: MemoryOptions) -> None:
    def sizes(names: set[int]) -> list[int]:
        return sorted(buffer_size(context, name) for name in names)

    before = living(context, ["Buffer"])["Buffer"]
    compiled = compile_graph(read_model(CHANGES["small"]), HARDWARE, CompileOptions(memory=memory))
    with Program(context, compiled) as program:
        made = living(context, ["Buffer"])["Buffer"] - before
        of_tensors = {program.range_of(tensor).buffer for tensor in compiled.plan.places}
        assert sizes(of_tensors) == sorted(compiled.plan.buffer_bytes)
        assert sum(sizes(made)) == program.buffer_bytes
        weights_bytes = sum(sizes(made - of_tensors))
        assert program.buffer_bytes == compiled.plan.total_bytes + weights_bytes
        assert weights_bytes >= sum(kernel.weights_bytes for kernel in compiled.kernels)


def buffer_size(context: Context, name: int) -> int:
    """As OpenGL tells it, in bytes."""
    size, gl = ctypes.c_int64(), context.gl
    gl.glBindBuffer(opengl.COPY_READ_BUFFER, name)
    gl.glGetBufferParameteri64v(opengl.COPY_READ_BUFFER, opengl.BUFFER_SIZE, ctypes.byref(size))
    return size.value


@on_both_apis
def test_release_frees_all_objects(context: Context) -> None:
    before = living(context, OF_PROGRAMS)
    program = Program(context, compile_graph(read_model(CHANGES["small"]), HARDWARE))
    while_it_lives = living(context, OF_PROGRAMS)
    assert [kind for kind in OF_PROGRAMS if not while_it_lives[kind] > before[kind]] == [], (before, while_it_lives)
    program.release()
    assert living(context, OF_PROGRAMS) == before
    program.release()
    assert living(context, OF_PROGRAMS) == before


@on_both_apis
def test_a_shader_that_does_not_compile_is_one_line_and_leaves_nothing(context: Context) -> None:
    compiled = compile_graph(read_model(CHANGES["small"]), HARDWARE)
    last = compiled.kernels[-1]
    broken = replace(last, source=last.source.replace("void main() {", "void main() {\n    no_such_function();"))
    before = living(context)
    with pytest.raises(DeviceError, match="does not compile") as caught:
        Program(context, replace(compiled, kernels=(*compiled.kernels[:-1], broken)))
    assert "\n" not in str(caught.value)
    assert "kernel.comp" in str(caught.value)
    assert "no_such_function" in str(caught.value)
    assert living(context) == before


def test_tensors_over_the_limit_are_refused_before_memory_is_taken() -> None:
    sketch = Sketch(0)
    sketch.output(sketch.unary("RELU", sketch.image(64, 64, 4)))
    graph = read_model(sketch.build())
    with pytest.raises(DeviceError, match=r"takes .* MiB, this device allows .* MiB a tensor"):
        compile_graph(graph, HARDWARE.with_limits(storage_block_bytes=64 * 64 * 16 - 1))
    compile_graph(graph, HARDWARE.with_limits(storage_block_bytes=64 * 64 * 16))


def test_progress_counts_up_to_the_end(context: Context) -> None:
    calls: list[tuple[int, int]] = []
    compiled = compile_graph(read_model(CHANGES["small"]), HARDWARE)
    with Program(context, compiled, lambda done, total: calls.append((done, total))):
        pass
    total = len(compiled.kernels)
    assert calls == [(done, total) for done in range(total + 1)]


def test_made_in_steps_it_is_the_same_program(context: Context) -> None:
    model = CHANGES["small"]
    inputs = random_inputs(model)
    compiled = compile_graph(read_model(model), HARDWARE)
    steps = Program.in_steps(context, compiled)
    for done in range(len(compiled.kernels) + 1):
        assert next(steps) == (done, len(compiled.kernels))
    with pytest.raises(StopIteration) as ended:
        next(steps)
    with ended.value.value as program:
        assert worst(run(program, inputs), on_cpu(model, inputs)) <= TOLERANCE


def test_closed_while_it_is_made_it_leaves_nothing(context: Context) -> None:
    before = living(context, OF_PROGRAMS)
    steps = Program.in_steps(context, compile_graph(read_model(CHANGES["small"]), HARDWARE))
    next(steps), next(steps)
    while_it_is_made = living(context, OF_PROGRAMS)
    assert all(while_it_is_made[kind] > before[kind] for kind in OF_PROGRAMS)
    steps.close()
    assert living(context, OF_PROGRAMS) == before


def test_progress_that_fails_leaves_nothing(context: Context) -> None:
    def fail(done: int, total: int) -> None:
        if done == 2:
            raise KeyError

    before = living(context)
    with pytest.raises(KeyError):
        Program(context, compile_graph(read_model(CHANGES["small"]), HARDWARE), fail)
    assert living(context) == before


def test_the_first_run_is_fed_like_all_others(context: Context) -> None:
    """Drivers compile at the first run for the state they find, so what writes the input must have come before."""
    model = CHANGES["small"]
    (image,) = inputs = random_inputs(model)
    compiled = compile_graph(read_model(model), HARDWARE)
    texels = phwc4(image[0])

    def input_pass(tensor: TensorRange) -> None:
        write_buffer(context, tensor, texels.ctypes.data)

    with Program(context, compiled, input_pass=input_pass) as program:
        found = [program.read(compiled.graph.outputs[0])]
    assert worst(found, on_cpu(model, inputs)) <= TOLERANCE


@exhaustive
@pytest.mark.parametrize("name", CHANGES)
def test_a_repeated_dispatch_changes_nothing(name: str, program_of: Compile) -> None:
    program = program_of(name)
    (once,) = run(program, random_inputs(CHANGES[name]))
    for number in range(len(program.compiled.kernels)):
        program.repeat(number, 3)
    assert program.read(program.compiled.graph.outputs[0]).tobytes() == once.tobytes()
    for accesses in accesses_of(program.compiled):
        written, read = ([access for access in accesses if access.writes is writes] for writes in (True, False))
        assert not any(one.conflicts(other) for one in written for other in read)


@exhaustive
def test_several_programs_share_a_context(program_of: Compile) -> None:
    names = ("small", "wide picture")
    programs, inputs = [program_of(name) for name in names], [random_inputs(CHANGES[name]) for name in names]
    found = [run(program, values) for program, values in zip(programs, inputs, strict=True)]
    again = [run(program, values) for program, values in zip(programs, inputs, strict=True)]
    for name, values, first, second in zip(names, inputs, found, again, strict=True):
        assert worst(first, on_cpu(CHANGES[name], values)) <= TOLERANCE
        assert first[0].tobytes() == second[0].tobytes()
