"""Shader text: includes, parameters, sections, drivers' logs; generated GLSL is unchanged and valid."""

import hashlib
import json
import random
import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

import pytest

from tests.gpu_compilers.glslang import complaints_of_kernels, in_es, validate
from tests.helpers.engine import DEVICES
from tests.helpers.markers import exhaustive
from tests.helpers.portable import needs_validator
from tests.model_files.model_builder import SELFIE, selfie_like
from tests.model_files.sketch import Sketch
from texelflow.gpu_delegate.base.errors import DeviceError
from texelflow.gpu_delegate.device.device import HARDWARE, SOFTWARE, Device
from texelflow.gpu_delegate.model.layout import Precision
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.glsl.compiled_graph import CompiledGraph, compile_graph
from texelflow.gpu_delegate.targets.glsl.shader import explain_log, fill, load

DATA = Path(__file__).parents[3] / "data"
ENDINGS = (".comp", ".frag", ".vert")
MIXED_VARIANTS = 40  # of one shader
SEED = 430
AFTER_INCLUDES = "layout(binding = "


class TestText:
    """load() and fill(), on the project's own shaders."""

    def test_parameters_replace_their_defaults(self) -> None:
        text = load("kernel.comp", {"LOCAL_X": 32, "WIDTH": 7})
        assert "#define LOCAL_X 32\n" in text
        assert "#define WIDTH 7\n" in text
        assert "#define HEIGHT 8\n" in text

    def test_text_begins_with_the_version_and_the_files(self) -> None:
        version, *rest = load("kernel.comp").splitlines()
        assert version == "#version 430"
        assert rest[:3] == ["// file 0: kernel.comp", "// file 1: vocabulary.glsl", "// file 2: elementwise.glsl"]

    def test_lines_are_numbered_by_file_and_the_includer_goes_on_after_its_includes(self) -> None:
        lines = load("kernel.comp").splitlines()
        source = resources.files("texelflow.shaders").joinpath("kernel.comp").read_text().splitlines()
        for number, name in ((1, "vocabulary.glsl"), (2, "elementwise.glsl")):
            at = lines.index(f"#line {number}0001")
            included = resources.files("texelflow.shaders").joinpath(name).read_text().splitlines()
            assert lines[at + 1 : at + 1 + len(included)] == included
            below = source.index(f'#include "{name}"') + 2  # lines count from 1, and the next one is meant
            assert lines[at + 1 + len(included)] == f"#line {below}"

    @pytest.mark.parametrize(
        ("value", "text"), [(3, "3"), (1.0, "1.0"), (1e-7, "1e-07"), (0.1, "0.1"), (True, "1"), ("vec4", "vec4")]
    )
    def test_values_as_glsl_writes_them(self, value: str | int | float, text: str) -> None:
        assert f"#define WIDTH {text}\n" in load("kernel.comp", {"WIDTH": value})

    @pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
    def test_what_is_not_finite_is_refused(self, value: float) -> None:
        with pytest.raises(DeviceError, match="cannot hold the value"):
            load("kernel.comp", {"WIDTH": value})

    def test_a_parameter_that_no_file_has_is_refused(self) -> None:
        with pytest.raises(ValueError, match=r"kernel\.comp has no parameter DEPTH"):
            load("kernel.comp", {"DEPTH": 3})

    def test_a_shader_that_does_not_exist(self) -> None:
        with pytest.raises(FileNotFoundError):
            load("nothing.comp")

    def test_fill_puts_lines_in_place_of_the_example(self) -> None:
        source = "a\n//@ one\nexample\n//@ end\nb\n//@ two\n//@ end\nc\n"
        assert fill(source, {"one": ["x", "y"], "two": ["z"]}) == "a\nx\ny\nb\nz\nc\n"
        assert fill(source, {"two": []}) == "a\n//@ one\nexample\nb\nc\n"

    def test_fill_refuses_a_section_that_is_not_there(self) -> None:
        with pytest.raises(ValueError, match="no section three"):
            fill("a\n", {"three": []})


class TestLogs:
    """explain_log() on what drivers write about line 7 of the second file, which they call 10007."""

    SOURCE = load("kernel.comp")

    @pytest.mark.parametrize(
        "log",
        [
            "0:10007(12): error: `foo' undeclared",  # Mesa
            "ERROR: 0:10007: error: `foo' undeclared",  # glslang, Apple, Intel
            "0(10007) : error C1503: `foo' undeclared",  # NVIDIA
        ],
    )
    def test_names_the_file_and_the_line(self, log: str) -> None:
        text = explain_log(log, self.SOURCE)
        assert text.startswith("vocabulary.glsl:7: ")
        assert text.endswith("`foo' undeclared")

    def test_gives_the_first_few_in_one_line(self) -> None:
        text = explain_log("\n".join(f"0:{n}(1): error: no {n}" for n in range(1, 9)), self.SOURCE)
        assert text == "kernel.comp:1: no 1; kernel.comp:2: no 2; kernel.comp:3: no 3"

    def test_leaves_warnings_out(self) -> None:
        log = "Compute info\n------------\n0(7) : warning C7011: implicit\n0(10007) : error C1503: undefined"
        assert explain_log(log, self.SOURCE) == "vocabulary.glsl:7: C1503: undefined"

    @pytest.mark.parametrize(
        ("log", "text"), [("", "the driver gives no reason"), ("out of memory\n", "out of memory")]
    )
    def test_says_what_there_is(self, log: str, text: str) -> None:
        assert explain_log(log, self.SOURCE) == text


def small_model(device: Device, precision: Precision = "fp32") -> CompiledGraph:
    """A gated bottleneck with a mask: few ops, and every way in which kernels are written."""
    m = Sketch(0)
    x = m.unary("HARD_SWISH", m.conv(m.image(6, 8, 3), 5))
    wide = m.unary("RELU", m.depthwise(m.conv(x, 9, activation="RELU"), (3, 3)))
    gate = m.unary("LOGISTIC", m.conv(m.conv(m.mean(wide), 3, activation="RELU"), 9))
    x = m.binary("ADD", m.conv(m.binary("MUL", wide, gate), 5), x)
    x = m.resize(x, (12, 16), half_pixel_centers=True)
    m.output(m.unary("LOGISTIC", m.transpose(x, 1, (2, 2), (2, 2), "SAME", custom=True)))
    return compile_graph(read_model(m.build()), device, CompileOptions(precision=precision))


@pytest.fixture(scope="module")
def snapshots() -> Mapping[str, CompiledGraph]:
    """What a refactor may not change unnoticed."""
    selfie, changed = read_model(selfie_like(0, SELFIE)), read_model(selfie_like(0))
    return {
        "small, software": small_model(SOFTWARE),
        "small, hardware": small_model(HARDWARE),
        "small, software, fp16": small_model(SOFTWARE, "fp16"),
        "small, storage buffers, fp16": small_model(HARDWARE.with_limits(texture_buffer_texels=64), "fp16"),
        "selfie, software": compile_graph(selfie, SOFTWARE),
        "selfie, hardware": compile_graph(selfie, HARDWARE),
        "changed, software": compile_graph(changed, SOFTWARE),
        "changed, software, unfused": compile_graph(changed, SOFTWARE, CompileOptions(fuse=False)),
    }


def digests(compiled: CompiledGraph) -> list[str]:
    """A line for each kernel: name, grid, and what its text and its weights are."""
    return [
        f"{kernel.name} {'x'.join(map(str, kernel.grid))}/{'x'.join(map(str, kernel.local))} "
        f"{hashlib.sha256(kernel.source.encode()).hexdigest()[:12]} "
        f"{hashlib.sha256(kernel.weights.astype('<f4').tobytes()).hexdigest()[:12]}"
        for kernel in compiled.kernels
    ]


def test_generated_kernels_are_what_they_were(
    pytestconfig: pytest.Config, snapshots: Mapping[str, CompiledGraph]
) -> None:
    """After an intended change: pytest --update-snapshots, and look at what git shows of tests/data."""
    kernels = snapshots["small, hardware"].kernels
    text = "\n".join(f"// {k.name}\n{k.source[k.source.index(AFTER_INCLUDES) :]}" for k in kernels)
    found = {name: digests(compiled) for name, compiled in snapshots.items()}
    stored, example = DATA / "kernels.json", DATA / "small_model.comp"
    if pytestconfig.getoption("--update-snapshots"):
        stored.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        example.write_text(text, encoding="utf-8")
    assert text == example.read_text(encoding="utf-8")
    assert found == json.loads(stored.read_text(encoding="utf-8"))


def variants(name: str) -> list[str]:
    """A shader of the program with the choices that its text makes by its parameters: each value once, then mixed."""
    text = load(name)
    choices: dict[str, list[int]] = {}
    for parameter, default in re.findall(r"^\s*#define (\w+) (\d+)\s*(?://.*)?$", text, re.M):
        values = {int(value) for value in re.findall(rf"\b{parameter} [=<>]=? ?(\d+)", text)}
        if re.search(rf"^\s*#(?:el)?if .*\b{parameter}\b", text, re.M):
            values |= {0, 1}
        if values:
            choices[parameter] = sorted(values | {int(default)})
    dice = random.Random(SEED)
    each = [{parameter: value} for parameter, values in choices.items() for value in values]
    mixed = [{parameter: dice.choice(values) for parameter, values in choices.items()} for _ in range(MIXED_VARIANTS)]
    return [load(name), *(load(name, defines) for defines in each + mixed)]


@needs_validator
def test_generated_kernels_are_valid_glsl(tmp_path: Path, snapshots: Mapping[str, CompiledGraph]) -> None:
    """Those of whole networks; tests/gpu_delegate/cases/test_op_table.py has every op's."""
    plans = [*snapshots.values()]
    plans += [
        compile_graph(read_model(selfie_like(0)), device, CompileOptions(precision="fp16"))
        for device in (SOFTWARE, HARDWARE)
    ]
    plans.append(compile_graph(read_model(selfie_like(0)), DEVICES["baked"]))
    plans.append(compile_graph(read_model(selfie_like(0)), HARDWARE.with_limits(texture_buffer_texels=64)))
    assert complaints_of_kernels((kernel for plan in plans for kernel in plan.kernels), tmp_path) == []


@exhaustive
@needs_validator
def test_shaders_are_valid_glsl_with_whatever_parameters(tmp_path: Path) -> None:
    """Files with an entry point, as they are found: a new one is here by itself."""
    names = [file.name for file in resources.files("texelflow.shaders").iterdir() if file.name[-5:] in ENDINGS]
    sources = {(name[-4:], text) for name in names for text in variants(name)}
    assert {"image_to_tensor.comp", "composite.frag", "composite.vert"} <= set(names)
    assert len(sources) > 2 * len(names)
    assert validate({*sources, *in_es(sources)}, tmp_path) == []


@needs_validator
def test_validator_finds_mistakes(tmp_path: Path) -> None:
    source = small_model(HARDWARE).kernels[0].source
    wrong = source.replace("int x0 =", "int x0 = 1.5 +")
    assert wrong != source
    assert validate([("comp", source), ("comp", wrong)], tmp_path)
