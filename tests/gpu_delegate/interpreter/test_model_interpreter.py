"""The interpreter beside ai-edge-litert's own: the same calls, details, results and types of errors, in each way."""

import mmap
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRt
from ai_edge_litert.interpreter import OpResolverType

import texelflow
from tests.gpu_delegate.reading.test_signatures import several as three_signatures
from tests.helpers.markers import one_in
from tests.model_files.called_models import loop
from tests.model_files.delegate_models import any_size, three_partitions
from tests.model_files.model_builder import ModelBuilder
from tests.model_files.quantized_models import small_quantized
from tests.model_files.sketch import Sketch
from tests.model_files.state_models import drawn, lstm

BACKENDS = ("native", "gl", "tflite")
in_each = pytest.mark.parametrize("backend", BACKENDS)
Values = np.ndarray[Any, np.dtype[Any]]


def several() -> bytes:
    """Two inputs, one of which is an output, too, and an output that is given twice."""
    m = Sketch(1)
    x, y, z = m.image(4, 5, 3), m.input((2, 3)), m.input((3,))
    convolved = m.conv(x, 6, (3, 3))
    m.output(convolved, m.unary("TANH", y), z, convolved)
    return m.build()


def scalar() -> bytes:
    m = Sketch(1)
    x = m.input(())
    m.output(m.binary("ADD", x, m.input((3,))), m.unary("TANH", x))
    return m.build()


def of_type(dtype: str) -> bytes:
    m = ModelBuilder()
    x, y = (m.tensor((2, 3), dtype) for _ in range(2))
    m.inputs += [x, y]
    m.output(m.op("LOGICAL_AND" if dtype == "bool" else "ADD", [x, y], (2, 3), dtype))
    return m.build()


def given_back() -> bytes:
    """An input and a constant are outputs as they are."""
    m = Sketch(1)
    x = m.input((2, 3))
    m.output(x, m.unary("RELU", m.input((4,))), m.random(5))
    return m.build()


MODELS: dict[str, Callable[[], bytes]] = {
    "several": several,
    "lstm": lambda: drawn(lstm),
    "int8": small_quantized,
    "any size": any_size,
    "in parts": three_partitions,
    "a loop": loop,
    "scalar": scalar,
    "int32": lambda: of_type("int32"),
    "int64": lambda: of_type("int64"),
    "bool": lambda: of_type("bool"),
    "given back": given_back,
}


def values_of(detail: dict[str, Any], rng: np.random.Generator) -> Values:
    dtype, shape = np.dtype(detail["dtype"]), tuple(detail["shape"])
    if dtype.kind == "f":
        return np.asarray(rng.normal(size=shape), dtype)
    return np.asarray(rng.integers(0, 2, shape) if dtype.kind == "b" else rng.integers(-100, 100, shape), dtype)


def litert(model: bytes, **options: Any) -> Any:
    """By the reference kernels, where these are of 8 bits."""
    if any(detail["dtype"] is np.int8 for detail in LiteRt(model_content=model).get_tensor_details()):
        options["experimental_op_resolver_type"] = OpResolverType.BUILTIN_REF
    return LiteRt(model_content=model, **options)


def told(made: Any) -> str:
    """All details."""
    return repr((made.get_input_details(), made.get_output_details(), made.get_tensor_details()))


@one_in(2, ("backend", "name"), [(backend, name) for name in MODELS for backend in BACKENDS])
def test_calls_give_what_those_of_litert_give(name: str, backend: Any) -> None:
    model, rng = MODELS[name](), np.random.default_rng(0)
    ours, theirs = texelflow.Interpreter(model_content=model, backend=backend, exact=True), litert(model)
    with ours:
        assert told(ours) == told(theirs)
        for made in (ours, theirs):
            made.allocate_tensors()
        assert repr(ours.get_output_details()) == repr(theirs.get_output_details())
        for _ in range(3):  # states go on
            run_alike(ours, theirs, rng)
        assert ours.backend == ours.report().backend == backend
        assert sum(ours.report().places.values()) == ours.report().operators


def run_alike(ours: Any, theirs: Any, rng: np.random.Generator) -> None:
    for detail in theirs.get_input_details():
        values = values_of(detail, rng)
        for made in (ours, theirs):
            made.set_tensor(detail["index"], values)
        np.testing.assert_array_equal(ours.get_tensor(detail["index"]), values)
    for made in (ours, theirs):
        made.invoke()
    assert_alike(ours, theirs)


def assert_alike(ours: Any, theirs: Any) -> None:
    for detail in theirs.get_output_details():
        found, wanted = (made.get_tensor(detail["index"]) for made in (ours, theirs))
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        exact = found.dtype.kind != "f"
        np.testing.assert_allclose(found, wanted, rtol=0, atol=0 if exact else 2e-5)


@in_each
def test_operators_are_those_of_the_file(backend: Any) -> None:
    with texelflow.Interpreter(model_content=several(), backend=backend) as ours:
        ours.allocate_tensors()
        found = [each for each in ours._get_ops_details() if each["op_name"] != "DELEGATE"]
        assert repr(found) == repr(LiteRt(model_content=several())._get_ops_details())


@in_each
def test_inputs_are_resized_as_in_litert(backend: Any) -> None:
    model, rng = any_size(), np.random.default_rng(0)
    theirs = LiteRt(model_content=model)
    with texelflow.Interpreter(model_content=model, backend=backend) as ours:
        for size in ([1, 12, 8, 3], [1, 9, 5, 3], [1, 12, 8, 3], [1, 6, 8, 3]):
            for made in (ours, theirs):
                made.resize_tensor_input(0, size)
                assert made.get_input_details()[0]["shape"].tolist() == size
            assert repr(ours.get_output_details()) == repr(theirs.get_output_details())  # until they are allocated
            with pytest.raises(ValueError, match=r"allocate_tensors\(\)"):
                ours.get_tensor(0)
            with pytest.raises(RuntimeError, match="not ready"):
                ours.invoke()
            for made in (ours, theirs):
                made.allocate_tensors()
            assert repr(ours.get_output_details()) == repr(theirs.get_output_details())
            run_alike(ours, theirs, rng)
        ours.resize_tensor_input(0, [1, 6, 8, 7])
        with pytest.raises(RuntimeError) as refused:
            ours.allocate_tensors()
        assert isinstance(refused.value, texelflow.UnsupportedError)


@in_each
@pytest.mark.parametrize("is_allocated", [False, True])
def test_sizes_that_nobody_else_takes_are_tensorflow_lites(backend: Any, is_allocated: bool) -> None:
    with texelflow.Interpreter(model_content=any_size(), backend=backend) as made:
        if is_allocated:
            made.allocate_tensors()
        made.resize_tensor_input(0, [0, 6, 8, 3])
        made.allocate_tensors()
        made.invoke()
        assert (made.backend, made.get_input_details()[0]["shape"][0]) == ("tflite", 0)
        theirs = LiteRt(model_content=any_size())
        for each in (made, theirs):
            each.resize_tensor_input(0, [1, 6, 8, 3])
            each.allocate_tensors()
        run_alike(made, theirs, np.random.default_rng(0))


def test_whatever_has_a_buffer_is_a_models_content(tmp_path: Path) -> None:
    model = scalar()
    (tmp_path / "model.tflite").write_bytes(model)
    with open(tmp_path / "model.tflite", "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        for content in (bytearray(model), memoryview(model), np.frombuffer(model, np.uint8), mapped):
            given: Any = content
            assert told(texelflow.Interpreter(model_content=given)) == told(texelflow.Interpreter(model_content=model))
        del given, content


@in_each
@pytest.mark.parametrize("resets", ["reset_all_variables", "allocate_tensors"])
def test_states_are_reset_when_litert_resets_them(backend: Any, resets: str) -> None:
    model = drawn(lstm)
    theirs = LiteRt(model_content=model)
    with texelflow.Interpreter(model_content=model, backend=backend) as ours:
        for made in (ours, theirs):
            made.allocate_tensors()
        for seed in (1, 2):
            run_alike(ours, theirs, np.random.default_rng(seed))
            for made in (ours, theirs):
                getattr(made, resets)()


@in_each
def test_signatures_are_called_by_name(backend: Any) -> None:
    model, rng = three_signatures(), np.random.default_rng(0)
    theirs = LiteRt(model_content=model)
    with texelflow.Interpreter(model_content=model, backend=backend) as ours:
        assert repr(ours.get_signature_list()) == repr(theirs.get_signature_list())
        assert repr(ours._get_full_signature_list()) == repr(theirs._get_full_signature_list())
        assert ours.num_subgraphs() == theirs.num_subgraphs()
        for name in theirs.get_signature_list():
            mine, other = ours.get_signature_runner(name), theirs.get_signature_runner(name)
            assert repr(mine.get_input_details()) == repr(other.get_input_details())
            assert repr(mine.get_output_details()) == repr(other.get_output_details())
            given = {each: values_of(detail, rng) for each, detail in other.get_input_details().items()}
            np.testing.assert_allclose(mine(**given)["out0"], other(**given)["out0"], atol=1e-6)
            for wrong in ({}, {"nobody": 1, **dict(list(given.items())[1:])}):
                with pytest.raises(ValueError, match="in0, in1"):
                    mine(**wrong)


@in_each
def test_one_signature_can_be_the_models(backend: Any) -> None:
    with texelflow.Interpreter(model_content=three_signatures(), backend=backend, signature="product") as ours:
        given = {name: np.full((2, 7), 3, np.float32) for name in ("in0", "in1")}
        np.testing.assert_allclose(ours(**given), LiteRt(model_content=three_signatures()).get_signature_runner(
            "product")(**given)["out0"])  # fmt: skip
        assert ours.get_input_details()[0]["shape"].tolist() == [2, 7]
    with pytest.raises(ValueError, match="did you mean product"):
        texelflow.Interpreter(model_content=three_signatures(), signature="produkt")


@in_each
def test_arrays_of_tensors_are_what_runs_read_and_write(backend: Any) -> None:
    model = any_size()
    theirs = LiteRt(model_content=model)
    with texelflow.Interpreter(model_content=model, backend=backend) as ours:
        output = theirs.get_output_details()[0]["index"]
        for made in (ours, theirs):
            made.allocate_tensors()
            made.tensor(0)()[...] = 0.7
            made.invoke()
        np.testing.assert_allclose(ours.tensor(output)(), theirs.tensor(output)(), atol=1e-5)
        for made in (ours, theirs):
            made.tensor(0)().fill(0.2)
            made.invoke()
        np.testing.assert_allclose(ours.tensor(output)(), theirs.tensor(output)(), atol=1e-5)
        run_alike(ours, theirs, np.random.default_rng(0))
        np.testing.assert_allclose(ours.tensor(output)(), theirs.tensor(output)(), atol=1e-5)


@in_each
def test_values_that_are_not_finite_end_with_their_run(backend: Any) -> None:
    model = any_size()
    theirs = LiteRt(model_content=model)
    with texelflow.Interpreter(model_content=model, backend=backend) as ours:
        for made in (ours, theirs):
            made.allocate_tensors()
        values = np.full((1, 6, 8, 3), np.nan, np.float32)
        ours.set_tensor(0, values)
        ours.invoke()
        run_alike(ours, theirs, np.random.default_rng(0))


@in_each
def test_arrays_in_any_order_are_right(backend: Any) -> None:
    model, rng = any_size(), np.random.default_rng(0)
    theirs = LiteRt(model_content=model)
    with texelflow.Interpreter(model_content=model, backend=backend) as ours:
        for made in (ours, theirs):
            made.allocate_tensors()
        whole = rng.normal(size=(2, 12, 8, 6)).astype(np.float32)
        for values in (np.asfortranarray(whole[:1, :6, :, :3]), whole[1:, ::2, ::-1, ::2]):
            for made in (ours, theirs):
                made.set_tensor(0, values)
                made.invoke()
            assert_alike(ours, theirs)


@pytest.mark.filterwarnings("ignore:Warning. Enabling")
def test_all_tensors_are_kept_by_tensorflow_lite() -> None:
    options: Any = {"experimental_preserve_all_tensors": True}
    options["experimental_op_resolver_type"] = OpResolverType.BUILTIN_REF
    theirs = LiteRt(model_content=any_size(), **options)
    with texelflow.Interpreter(model_content=any_size(), **options) as ours:
        for made in (ours, theirs):
            made.allocate_tensors()
        run_alike(ours, theirs, np.random.default_rng(0))
        inner = theirs._get_ops_details()[0]["outputs"][0]
        np.testing.assert_array_equal(ours.get_tensor(inner), theirs.get_tensor(inner))
        assert ours.backend == "tflite"
    with texelflow.Interpreter(model_content=any_size(), backend="native") as ours:
        ours.allocate_tensors()
        with pytest.raises(ValueError, match="experimental_preserve_all_tensors=True"):
            ours.get_tensor(inner)


def test_a_delegate_of_the_callers_has_tensorflow_lite_run_the_rest() -> None:
    delegate = texelflow.GpuDelegate(quiet=True)
    with texelflow.Interpreter(model_content=any_size(), experimental_delegates=[delegate]) as ours:
        ours.allocate_tensors()
        assert delegate.is_applied
        assert ours.backend == "tflite"


@in_each
def test_in_short(backend: Any) -> None:
    with texelflow.Interpreter(model_content=any_size(), backend=backend) as ours:
        image = np.random.default_rng(0).random((6, 8, 3))
        found = ours(image)["tensor12"]
        np.testing.assert_array_equal(found, ours(image[None].astype(np.float32))["tensor12"])
        for wrong in ([image, image], [], [image.astype(np.uint8)], ["text"], [np.zeros((6, 8, 4))]):
            with pytest.raises((ValueError, TypeError)) as refused:
                ours(*wrong)
            assert isinstance(refused.value, texelflow.UsageError)
    with texelflow.Interpreter(model_content=several(), backend=backend) as ours:
        given = {"tensor0": np.ones((4, 5, 3)), "tensor1": np.ones((2, 3)), "tensor2": [1.0, 2.0, 3.0]}
        assert {name: value.shape for name, value in ours(**given).items()} == {
            "tensor5": (1, 4, 5, 6), "tensor6": (2, 3), "tensor2": (3,)}  # fmt: skip
        with pytest.raises(ValueError, match="did you mean tensor"):
            ours(tensr0=image)


WITHOUT = """
import sys
sys.modules.update(dict.fromkeys(("ai_edge_litert", "tflite_runtime", "tensorflow")))
import numpy as np, texelflow
for backend in ("native", "gl", "auto"):
    with texelflow.Interpreter(sys.argv[1], backend=backend) as made:
        made.allocate_tensors()
        detail, = made.get_input_details()
        made.set_tensor(detail["index"], np.ones(detail["shape"], detail["dtype"]))
        made.invoke()
        print(made.backend, made.get_tensor(made.get_output_details()[0]["index"]).shape)
try:
    texelflow.Interpreter(sys.argv[1], backend="tflite")
except texelflow.DeviceError as error:
    print(error)
"""


def test_our_own_ways_need_no_tensorflow_lite(tmp_path: Path) -> None:
    file = tmp_path / "model.tflite"
    file.write_bytes(any_size())
    done = subprocess.run([sys.executable, "-c", WITHOUT, str(file)], capture_output=True, text=True, timeout=120)
    shown = done.stdout.splitlines()
    assert shown[:3] == ["native (1, 12, 6)", "gl (1, 12, 6)", "native (1, 12, 6)"], done.stderr
    assert "not installed" in shown[3]


def texts() -> bytes:
    m = ModelBuilder()
    m.inputs.append(m.tensor((2,), "string"))
    m.output(m.op("RESHAPE", [0, m.constant([2], "int32")], (2,), "string"))
    return m.build()


def places() -> bytes:
    """As many as there are, which is none of what trials draw."""
    m = ModelBuilder()
    m.inputs.append(m.tensor((5,), "bool"))
    m.output(m.op("WHERE", [0], (5, 1), "int64"))
    return m.build()


@pytest.mark.parametrize("backend", ["auto", "tflite"])
@pytest.mark.parametrize(
    ("model", "values"), [(texts(), np.array([b"a", b"bcd"], object)), (places(), np.array([1, 0, 1, 1, 0], bool))]
)
def test_what_tensorflow_lite_alone_can_run_runs(model: bytes, values: Values, backend: Any) -> None:
    theirs = LiteRt(model_content=model)
    with texelflow.Interpreter(model_content=model, backend=backend) as ours:
        for made in (ours, theirs):
            made.allocate_tensors()
            made.set_tensor(0, values)
            made.invoke()
        output = theirs.get_output_details()[0]["index"]
        np.testing.assert_array_equal(ours.get_tensor(output), theirs.get_tensor(output))
        np.testing.assert_array_equal(ours(values), theirs.get_tensor(output))


@in_each
def test_indices_out_of_range_end_the_run_alone(backend: Any) -> None:
    m = Sketch(1)
    table, row = m.input((4, 3)), m.tensor((2,), "int32")
    m.inputs.append(row)
    m.output(m.op("GATHER", [table, row], (2, 3), axis=0))
    with texelflow.Interpreter(model_content=m.build(), backend=backend) as ours:
        given = np.arange(12, dtype=np.float32).reshape(4, 3)
        with pytest.raises(RuntimeError, match="out of bounds") as failed:
            ours(given, np.array([1, 9], np.int32))
        assert isinstance(failed.value, texelflow.InferenceError)
        np.testing.assert_array_equal(ours(given, np.array([1, 2], np.int32)), given[1:3])


def test_damaged_files_are_value_errors_in_one_line() -> None:
    rng, refused = np.random.default_rng(3), list[texelflow.TexelflowError]()
    for number in range(60):
        damaged = bytearray((any_size, three_signatures)[number % 2]())
        for _ in range(3):
            damaged[rng.integers(len(damaged))] = rng.integers(256)
        try:
            made = texelflow.Interpreter(model_content=bytes(damaged), backend="native")
            told(made)
            made._get_ops_details()
            made.get_signature_list()
        except texelflow.TexelflowError as error:
            refused.append(error)
    assert 0 < len(refused) < 60
    assert all(isinstance(error, ValueError) and "\n" not in str(error) for error in refused)


@pytest.mark.parametrize(("backend", "precision"), [("native", "fp16"), ("gl", "bf16"), ("tflite", "fp16")])
def test_a_precision_that_a_backend_lacks_is_refused(backend: Any, precision: Any) -> None:
    with pytest.raises(ValueError, match=r"is for backend '(gl|native)'"):
        texelflow.Interpreter(model_content=several(), backend=backend, precision=precision)


MISTAKES: dict[str, Callable[[Any], Any]] = {
    "type": lambda made: made.set_tensor(0, np.zeros((1, 4, 5, 3))),
    "dimensions": lambda made: made.set_tensor(0, np.zeros((1, 4, 5), np.float32)),
    "size": lambda made: made.set_tensor(0, np.zeros((1, 4, 5, 4), np.float32)),
    "index": lambda made: made.set_tensor(99, np.zeros((1, 4, 5, 3), np.float32)),
    "negative index": lambda made: made.get_tensor(-1),
    "index to get": lambda made: made.get_tensor(99),
    "name for an index": lambda made: made.get_tensor("tensor0"),
    "no array": lambda made: made.set_tensor(0, None),
    "signature": lambda made: made.get_signature_runner("nobody"),
    "no signature": lambda made: made.get_signature_runner(),
    "subgraph": lambda made: made.get_tensor_details(3),
    "resized tensor": lambda made: made.resize_tensor_input(99, [1, 2]),
    "strictly resized": lambda made: made.resize_tensor_input(0, [1, 9, 5, 3], strict=True),
    "size of text": lambda made: made.resize_tensor_input(0, "abc"),
    "size of no list": lambda made: made.resize_tensor_input(0, 3),
    "no size": lambda made: made.resize_tensor_input(0, None),
    "size of lists": lambda made: made.resize_tensor_input(0, [[1, 4, 5, 3]]),
}


@in_each
def test_mistakes_are_errors_of_the_same_types(backend: Any) -> None:
    model = several()
    with texelflow.Interpreter(model_content=model, backend=backend) as ours:
        for before in (lambda made: made.invoke(), lambda made: made.get_tensor(0)):
            assert kind_of(before, ours) == kind_of(before, LiteRt(model_content=model))
        ours.allocate_tensors()
        for name, call in MISTAKES.items():
            theirs = LiteRt(model_content=model)
            theirs.allocate_tensors()
            with pytest.raises(texelflow.TexelflowError) as found:
                call(ours)
            assert isinstance(found.value, kind_of(call, theirs)), name
            assert "\n" not in str(found.value)


def kind_of(call: Callable[[Any], Any], made: Any) -> type[Exception]:
    """The built-in type of what a call raises."""
    with pytest.raises((ValueError, RuntimeError, TypeError)) as found:
        call(made)
    return next(kind for kind in (ValueError, RuntimeError, TypeError) if isinstance(found.value, kind))


def test_wrong_arguments_are_the_constructors_errors() -> None:
    wrong: list[dict[str, Any]] = [
        {},
        {"model_path": "nope.tflite"},
        {"model_content": b"abc"},
        {"model_path": "a", "model_content": b"c"},
        {"model_content": several(), "num_threads": 0},
        {"model_content": several(), "num_threads": "2"},
        {"model_content": several(), "experimental_op_resolver_type": "x"},
        {"model_path": 3},
        {"model_content": "text"},
        {"model_content": several(), "foo": 1},
    ]
    for arguments in wrong:
        kind = kind_of(lambda given: LiteRt(**given), arguments)
        with pytest.raises(kind):
            texelflow.Interpreter(**arguments)


def test_bytes_are_the_reference_kernels_unless_tflite_itself_is_asked_for() -> None:
    model = MODELS["int8"]()
    chosen = {
        (backend, exact): texelflow.Interpreter(model_content=model, backend=backend, exact=exact)._options.exact
        for backend in ("auto", "native", "tflite")
        for exact in (None, True, False)
    }
    assert [key for key, exact in chosen.items() if exact != (key[0] != "tflite" if key[1] is None else key[1])] == []
