"""`--signature NAME`: verbs about a model take any of its signatures, and name those that are left."""

import json
from pathlib import Path

import numpy as np
import pytest

import texelflow
from tests.gpu_delegate.reading.test_signatures import SHAPES, several
from tests.helpers.commands import Command
from tests.model_files.model_builder import ModelBuilder
from texelflow.app.models.model_loading import load_graph
from texelflow.gpu_delegate.targets.gl.context import Context

VERBS = (("inspect", "--no-peaks"), ("check",), ("bench", "model", "--backend", "cpu", "--runs", 1, "--warmup", 0))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "several.tflite"
    path.write_bytes(several())
    return path


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


def with_model(verb: tuple[object, ...], file: Path, *more: object) -> tuple[object, ...]:
    return (*verb[: 2 if verb[0] == "bench" else 1], file, *verb[2 if verb[0] == "bench" else 1 :], *more)


@pytest.mark.gl
@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: str(verb[0]))
def test_a_verb_takes_the_signature_that_is_named(verb: tuple[object, ...], file: Path, command: Command) -> None:
    ended = command(*with_model(verb, file, "--signature", "product", "--json"))
    found = json.loads(ended.out)
    assert ended.code == 0
    assert (found["signature"], found["other_signatures"]) == ("product", ["sum", "difference"])
    assert "several: signature product; --signature NAME for another: sum, difference" in ended.err


@pytest.mark.gl
@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: str(verb[0]))
def test_without_a_name_it_is_the_first(verb: tuple[object, ...], file: Path, command: Command) -> None:
    ended = command(*with_model(verb, file))
    assert ended.code == 0
    assert "several: signature sum; --signature NAME for another: product, difference" in ended.err


@pytest.mark.parametrize("verb", [*VERBS, ("tune",)], ids=lambda verb: str(verb[0]))
def test_a_wrong_name_is_one_line(verb: tuple[object, ...], file: Path, command: Command) -> None:
    ended = command(*with_model(verb, file, "--signature", "sums"))
    line = "texelflow: several: there is no signature 'sums'; there are: sum, product, difference; did you mean sum?"
    assert (ended.code, ended.err.strip().splitlines()[-1]) == (2, line)


def test_a_recording_has_no_signatures(command: Command) -> None:
    ended = command("check", "assets/people.mp4", "--signature", "sum")
    assert ended.code == 2
    assert "--signature is for models; a recording has none" in ended.err


@pytest.mark.gl
@pytest.mark.parametrize(("name", "computed"), [("product", np.multiply), ("difference", np.subtract)])
def test_a_program_runs_it(file: Path, name: str, computed: np.ufunc, context: Context) -> None:
    model = texelflow.Model.load(file, signature=name)
    assert (model.signature, set(model.other_signatures)) == (name, {"sum", "product", "difference"} - {name})
    number = ("sum", "product", "difference").index(name)
    rng = np.random.default_rng(0)
    values = [rng.uniform(-1, 1, SHAPES[number % 2]).astype(np.float32) for _ in range(2)]
    with texelflow.Program(model, quiet=True) as program:
        for tensor, given in zip(model.inputs, values, strict=True):
            program.write(tensor, given)
        program.run()
        np.testing.assert_allclose(program.read(model.outputs[0]), computed(*values) + number + 1, rtol=1e-6)


def test_the_api_refuses_a_wrong_name(file: Path) -> None:
    with pytest.raises(texelflow.UsageError, match="there is no signature 'x'"):
        texelflow.Model.load(file, signature="x")
    assert load_graph(str(file)).signature == "sum"


def test_a_model_that_computes_nothing_is_not_checked(tmp_path: Path, command: Command) -> None:
    model = ModelBuilder()
    model.output(model.input((1, 3)))
    (tmp_path / "wire.tflite").write_bytes(model.build())
    ended = command("check", tmp_path / "wire.tflite")
    assert (ended.code, "wire: no operator gives anything out" in ended.err) == (2, True)
