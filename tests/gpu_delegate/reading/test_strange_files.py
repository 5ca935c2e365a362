"""Files that the reader takes and that crash TensorFlow Lite, which therefore gets a rewritten file.

What is wild in them is what the graph does not need, so that the models run all the same.
"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tflite

from tests.app.models.test_metadata import metadata_flatbuffer
from tests.helpers.commands import Command
from tests.helpers.markers import one_in
from tests.helpers.original_file import OriginalFile
from tests.helpers.running import ROOT
from tests.helpers.waiting import PATIENCE_S
from tests.model_files.model_builder import ModelBuilder
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.reading.reader import read_model

OUTSIDE = -(1 << 30)  # a position far behind the file's end, as an offset for the builder
SHAPE = (1, 8, 8, 3)


def network() -> bytes:
    model = ModelBuilder()
    inputs = [model.input(SHAPE), model.constant(np.ones((1, 1, 1, 3))), model.constant(np.zeros(1))]
    x = model.op("CONV_2D", inputs, (1, 8, 8, 1), stride=(1, 1), dilation=(1, 1), padding="SAME")
    model.output(model.op("LOGISTIC", [x], (1, 8, 8, 1)))
    return model.build()


class Strange(OriginalFile):
    """Puts something in front of a file that nothing in its graph mentions; its metadata says what its numbers mean."""

    def __init__(self) -> None:
        super().__init__(network())
        stored = self.builder.CreateByteVector(metadata_flatbuffer([0.0], [1.0], 0))
        self.buffers.append(self.table("Buffer", Data=stored))
        name = self.builder.CreateString("TFLITE_METADATA")
        self.metadata = [self.table("Metadata", Name=name, Buffer=len(self.buffers) - 1)]
        self.signatures: list[int] = []

    def file(self) -> bytes:
        codes = [-self.model.OperatorCodes(i)._tab.Pos for i in range(self.model.OperatorCodesLength())]
        operators = [-self.subgraph.Operators(i)._tab.Pos for i in range(self.subgraph.OperatorsLength())]
        outputs = self.builder.CreateNumpyVector(self.subgraph.OutputsAsNumpy())
        metadata, signatures = self.vector(self.metadata), self.vector(self.signatures)

        def add() -> None:
            tflite.ModelAddMetadata(self.builder, metadata)
            tflite.ModelAddSignatureDefs(self.builder, signatures)

        self.builder.Finish(self.root(codes, operators, outputs, add), b"TFL3")
        return bytes(self.builder.Output()) + self.data

    def unused_tensor(self, **fields: int) -> None:
        shape = self.builder.CreateNumpyVector(np.array((1, 1, 1, 3), np.int32))
        self.tensors.append(self.table("Tensor", **({"Shape": shape} | fields)))

    def table(self, name: str, **fields: int) -> int:
        """A table of the schema; all fields that are given."""
        getattr(tflite, f"{name}Start")(self.builder)
        for field, value in fields.items():
            getattr(tflite, f"{name}Add{field}")(self.builder, value)
        return int(getattr(tflite, f"{name}End")(self.builder))


def wild_quantization() -> bytes:
    strange = Strange()
    table = strange.table("QuantizationParameters", Scale=OUTSIDE, ZeroPoint=OUTSIDE)
    strange.unused_tensor(Quantization=table)
    return strange.file()


def wild_unused_shape() -> bytes:
    strange = Strange()
    strange.unused_tensor(Shape=OUTSIDE)
    return strange.file()


def wild_signature() -> bytes:
    strange = Strange()
    strange.signatures.append(strange.table("SignatureDef", SignatureKey=OUTSIDE))
    return strange.file()


def wild_segments() -> bytes:
    strange = Strange()
    kind = tflite.SparseIndexVector.Int32Vector
    values = strange.table("Int32Vector", Values=OUTSIDE)
    vectors = {"ArraySegmentsType": kind, "ArraySegments": values, "ArrayIndicesType": kind, "ArrayIndices": values}
    dimension = strange.table("DimensionMetadata", Format=tflite.DimensionType.SPARSE_CSR, **vectors)
    order = strange.builder.CreateNumpyVector(np.arange(1, dtype=np.int32))
    table = strange.table("SparsityParameters", TraversalOrder=order, DimMetadata=strange.vector([dimension]))
    strange.unused_tensor(Sparsity=table, Buffer=1)  # whose values are the network's weights
    return strange.file()


def wild_metadata() -> bytes:
    strange = Strange()
    name = strange.builder.CreateString("min_runtime_version")
    strange.buffers.append(strange.table("Buffer", Data=OUTSIDE))
    strange.metadata.append(strange.table("Metadata", Name=name, Buffer=len(strange.buffers) - 1))
    return strange.file()


STRANGE = (wild_quantization, wild_unused_shape, wild_signature, wild_segments, wild_metadata)


BY_NAME = pytest.mark.parametrize("build", STRANGE, ids=lambda build: build.__name__)


@pytest.fixture
def texelflow(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


JUDGE = """
import sys
from pathlib import Path
from texelflow.gpu_delegate.cpu.reference import load_interpreter_module
from tests.fuzz.children import in_child
interpreter = load_interpreter_module().Interpreter
for file in sys.argv[1:]:
    data = Path(file).read_bytes()
    print(in_child(lambda: str(interpreter(model_content=data).allocate_tensors())).how)
"""


def test_these_files_kill_or_stop_tensorflow_lite(tmp_path: Path) -> None:
    files = []
    for build in (network, *STRANGE):
        files.append(tmp_path / build.__name__)
        files[-1].write_bytes(build())
    command = [sys.executable, "-c", JUDGE, *map(str, files)]
    found = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=PATIENCE_S
    ).stdout.split()
    assert found[0] == "text"
    assert set(found[1:]) in ({"crashed"}, {"raised"})  # ai-edge-litert looks at offsets first, and refuses the files


@BY_NAME
def test_runs_what_is_written_instead(build: Callable[[], bytes]) -> None:
    x = np.random.default_rng(0).random(SHAPE, np.float32)
    wanted = 1 / (1 + np.exp(-x.sum(-1, keepdims=True)))
    for keep_all in (False, True):
        (found,) = Reference(read_model(build()), keep_all_tensors=keep_all).run(x)
        np.testing.assert_allclose(found, wanted, atol=1e-6)


@pytest.mark.gl
@one_in(2, "build", STRANGE, ids=lambda build: build.__name__)
def test_verbs(build: Callable[[], bytes], texelflow: Command, tmp_path: Path) -> None:
    file = tmp_path / "strange.tflite"
    file.write_bytes(build())
    assert texelflow("check", file, "--json").code == 0
    few = ("--runs", 1, "--warmup", 0, "--json")
    assert texelflow("bench", "frame", "--model", file, "--backend", "cpu", *few).code == 0
