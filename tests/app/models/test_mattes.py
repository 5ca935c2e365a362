"""Networks that remember, and those with own colors, are known by the shapes and names of their inputs and outputs."""

from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.markers import one_in
from tests.model_files.matte_models import (
    MATTE_SIZE,
    RVM_INPUTS,
    RVM_OUTPUTS,
    open_matte,
    recurrent_matte,
    single_matte,
)
from tests.model_files.model_builder import ModelBuilder
from texelflow.app.models.mattes import ALPHA, own_colors_of, shown_outputs, with_memory
from texelflow.app.models.model_loading import SegmentationModel, load_frame_model, load_segmentation
from texelflow.app.models.spec import SpecOptions
from texelflow.gpu_delegate.base.errors import UnsupportedError, UsageError
from texelflow.gpu_delegate.model.graph import Graph, Shape, Tensor

RANGE = SpecOptions(input_range=(0.0, 1.0))


@pytest.fixture
def load(tmp_path: Path) -> Callable[[bytes], SegmentationModel]:
    def loaded(data: bytes) -> SegmentationModel:
        path = tmp_path / "matte.tflite"
        path.write_bytes(data)
        return load_segmentation(str(path), RANGE)

    return loaded


def fed_back(model: SegmentationModel) -> list[tuple[str, str]]:
    tensors = model.graph.tensors
    return [(tensors[state.read].name, tensors[state.written].name) for state in model.graph.states]


@pytest.mark.parametrize("ratio", [False, True])
def test_each_further_input_is_what_came_out_before(load: Callable[[bytes], SegmentationModel], ratio: bool) -> None:
    """However a file orders them; a ratio is a constant."""
    model = load(recurrent_matte(ratio=ratio, order=(5, 0, 3, 1, 2, 4), inputs=(2, 4, 0, 1, 3)))
    assert sorted(fed_back(model)) == list(zip(RVM_INPUTS[1:], RVM_OUTPUTS[2:], strict=True))
    assert len(model.graph.inputs) == 5
    assert model.input_size == model.output_size == MATTE_SIZE
    assert (model.spec.activation, model.spec.channel, model.spec.has_own_colors) == ("none", ALPHA, True)
    assert (model.classes, model.class_names) == (1, ("0",))


def test_names_are_not_needed_where_shapes_differ(load: Callable[[bytes], SegmentationModel]) -> None:
    model = load(recurrent_matte(names=False, foreground=False, inputs=(3, 1, 0, 4, 2)))
    assert len(model.graph.states) == 4
    assert all(state.own.shape == model.graph.tensors[state.written].shape for state in model.graph.states)
    assert (model.spec.activation, model.spec.channel, model.spec.has_own_colors) == ("none", 0, False)


@pytest.mark.parametrize("foreground", [False, True])
def test_a_matte_of_one_frame_needs_no_activation(load: Callable[[bytes], SegmentationModel], foreground: bool) -> None:
    """It ends in a sigmoid, as MODNet does."""
    model = load(single_matte(foreground=foreground))
    assert (model.spec.activation, model.spec.has_own_colors, model.graph.states) == ("none", foreground, ())


def two_pictures() -> bytes:
    m = ModelBuilder()
    one, other = m.input((1, 8, 8, 3)), m.input((1, 8, 8, 2))
    m.output(m.op("CONCATENATION", [one, other], (1, 8, 8, 5), axis=3))
    return m.build()


def test_inputs_without_an_output_of_their_shape_are_refused(load: Callable[[bytes], SegmentationModel]) -> None:
    with pytest.raises(UnsupportedError, match=r"2 inputs and 1 output; .* \(tensor1 \[1, 8, 8, 2\]\) an output"):
        load(two_pictures())


def test_a_matte_is_no_picture(tmp_path: Path) -> None:
    path = tmp_path / "matte.tflite"
    path.write_bytes(recurrent_matte())
    with pytest.raises(UsageError, match="what black and white are: give --input-range"):
        load_frame_model(str(path))
    with pytest.raises((UsageError, UnsupportedError), match="picture"):
        load_frame_model(str(path), SpecOptions((0.0, 1.0), task="picture", output_range=(0.0, 1.0)))


@one_in(2, "names", [False, True])
@pytest.mark.parametrize(
    ("size", "kept"), [(None, (1, 18, 32, 7)), (MATTE_SIZE, (1, 3, 4, 7)), ((1024, 64), (1, 2, 32, 7))]
)
def test_states_of_no_size_get_that_of_their_outputs(
    load: Callable[[bytes], SegmentationModel], names: bool, size: tuple[int, int] | None, kept: Shape
) -> None:
    """As files have them that begin with zeros of any size; a picture of no size gets one, a ratio makes others."""
    model = load(open_matte(size, order=(5, 0, 3, 1, 2, 4), names=names))
    assert model.input_size == model.output_size == (size or (512, 288))
    assert model.graph.states[-1].own.shape == kept
    depths = [(state.own.shape[3], model.graph.tensors[state.written].shape[3]) for state in model.graph.states]
    assert depths == [(4, 4), (5, 5), (6, 6), (7, 7)]
    assert model.spec.has_own_colors


def state_of_no_size(added: Shape, output: str = "SUM") -> bytes:
    """A picture, and a state to which something of this shape is added, of which only sums come out, or itself."""
    m = ModelBuilder()
    picture, state = m.input((1, 8, 8, 3)), m.tensor((1, 1, 1, 1), signature=(-1, -1, -1, -1))
    m.inputs.append(state)
    sums = m.op("ADD", [state, m.constant(np.ones(added))], added)
    own = sums if output == "itself" else m.op("SUM", [sums, m.constant((0, 1, 2, 3), "int32")], ())
    alpha = m.op("MEAN", [picture, m.constant((3,), "int32")], (1, 8, 8, 1), keep_dims=True)
    m.output(m.op("LOGISTIC", [alpha], (1, 8, 8, 1)), own)
    return m.build()


def test_a_state_is_what_is_added_to_it(load: Callable[[bytes], SegmentationModel]) -> None:
    model = load(state_of_no_size((1, 8, 4, 2), "itself"))
    assert [state.own.shape for state in model.graph.states] == [(1, 8, 4, 2)]


def test_states_of_no_size_that_no_output_fits_say_how_to_convert(load: Callable[[bytes], SegmentationModel]) -> None:
    with pytest.raises(
        UnsupportedError, match=r"\[1, 1, 1, 1\]\) an output of the same shape.*onnx2tf -i .* -ois src:"
    ):
        load(state_of_no_size((1, 8, 4, 2)))


@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1, 1)])
def test_numbers_of_a_fixed_size_are_no_states(load: Callable[[bytes], SegmentationModel], shape: Shape) -> None:
    """Two by which a mask is multiplied: whatever the outputs are, none of them is the next frame's."""
    m = ModelBuilder()
    picture, gains = m.tensor((1, 8, 8, 3)), [m.tensor(shape), m.tensor(shape)]
    m.inputs += [picture, *gains]
    made = [m.op("MEAN", [picture, m.constant((3,), "int32")], (1, 8, 8, 1), keep_dims=True)]
    for gain in gains:
        made.append(m.op("MUL", [made[-1], gain], (1, 8, 8, 1)))
    m.output(m.op("LOGISTIC", [made[-1]], (1, 8, 8, 1)), *made)
    with pytest.raises(UnsupportedError, match="an output of the same shape"):
        load(m.build())


def test_pictures_of_no_size_that_an_operator_does_not_take(load: Callable[[bytes], SegmentationModel]) -> None:
    m = ModelBuilder()
    picture = m.tensor((1, 1, 1, 3), signature=(-1, -1, -1, 3))
    m.inputs.append(picture)
    m.output(m.op("ADD", [picture, m.constant(np.ones((1, 5, 7, 3)))], (1, 5, 7, 3)))
    with pytest.raises(
        UnsupportedError, match=r"cannot run on inputs of shape \[1, 288, 512, 3\].*with a fixed size, such as"
    ):
        load(m.build())


def test_more_states_than_any_network_has_are_refused() -> None:
    """Each is held against all outputs, so that thousands would take minutes."""
    count = 3000
    tensors = {0: Tensor(0, "picture", (1, 8, 8, 3))} | {n: Tensor(n, f"r{n}", (1, 4)) for n in range(1, 2 * count + 1)}
    inputs, outputs = (*range(count + 1),), (*range(count + 1, 2 * count + 1),)
    with pytest.raises(UnsupportedError, match="3001 inputs"):
        with_memory(Graph("many", MappingProxyType(tensors), (), inputs, outputs))


SHAPES = [
    (),
    (0,),
    (1,),
    (1, 8, 8, 3),
    (1, 4, 4, 3),
    (1, 8, 8, 1),
    (1, 4, 4, 2),
    (1, 0, 0, 3),
    (2, 8, 8, 3),
    (1, 2, 2, 2, 3),
]
DTYPES = ["float32", "float16", "int32", "string"]
kinds = st.lists(st.tuples(st.sampled_from(SHAPES), st.sampled_from(DTYPES)), max_size=5)


@given(kinds, kinds)
def test_any_inputs_and_outputs_are_fed_back_soundly_or_refused(
    inputs: list[tuple[Shape, str]], outputs: list[tuple[Shape, str]]
) -> None:
    tensors = {
        number: Tensor(number, f"tensor{number}", shape, dtype)
        for number, (shape, dtype) in enumerate([*inputs, *outputs])
    }
    ins, outs = tuple(range(len(inputs))), tuple(range(len(inputs), len(tensors)))
    graph = Graph("any", MappingProxyType(tensors), (), ins, outs)
    try:
        found = with_memory(graph)
    except UnsupportedError:
        return
    own_colors_of(found)
    assert len(inputs) < 2 or len(found.inputs) == 1 + len(found.states)
    assert {state.written for state in found.states}.isdisjoint(shown_outputs(found))
    for state in found.states:
        read, written = found.tensors[state.read], found.tensors[state.written]
        assert (read.shape, read.dtype) == (written.shape, written.dtype)
