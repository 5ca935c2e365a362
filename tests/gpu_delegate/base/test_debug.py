"""DEBUG, level by level, on a real program; names for debuggers; messages of the driver."""

import contextlib
import ctypes
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.waiting import PATIENCE_S
from tests.model_files.sketch import Sketch
from texelflow.gpu_delegate.base import debug
from texelflow.gpu_delegate.base.debug import LEVELS, Folder, level, safe_name
from texelflow.gpu_delegate.base.errors import DeviceError, OpenGLWarning
from texelflow.gpu_delegate.device.device import SOFTWARE
from texelflow.gpu_delegate.plan.hazards import STORAGE, TEXTURE_FETCH, Access, find_cyclic_barriers, reasons
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.gl import opengl, program_log
from texelflow.gpu_delegate.targets.gl.context import Context, compile_compute, label_text, open_context
from texelflow.gpu_delegate.targets.gl.program_log import MOST_DUMPED_RUNS, barrier_lines, plan_lines
from texelflow.gpu_delegate.targets.gl.runtime import Program
from texelflow.gpu_delegate.targets.gl.span_clock import ClockChoice
from texelflow.gpu_delegate.targets.glsl.compiled_graph import CompiledGraph, compile_graph
from texelflow.gpu_delegate.targets.glsl.roofline import Cost

ROOT = Path(__file__).parents[3]
EMPTY = "#version 430\nlayout(local_size_x = 1) in;\nvoid main() {}\n"


def compiled() -> CompiledGraph:
    """Two convolutions around a mean, in several dispatches; names as a stranger may choose them."""
    m = Sketch(0)
    x = m.unary("HARD_SWISH", m.conv(m.image(6, 8, 3), 5))
    wide = m.unary("RELU", m.depthwise(x, (3, 3)))
    m.output(m.conv(m.binary("MUL", wide, m.unary("LOGISTIC", m.conv(m.mean(wide), 5))), 2))
    return compile_graph(read_model(m.build()), SOFTWARE)


class Shown:
    """What a program shows at a level while it is made and run."""

    def __init__(self, context: Context, monkeypatch: pytest.MonkeyPatch, captured: pytest.CaptureFixture[str]) -> None:
        self._context, self._monkeypatch, self._captured = context, monkeypatch, captured

    def __call__(self, depth: int, runs: int = 1) -> list[str]:
        """Lines on stderr."""
        self._monkeypatch.setenv("DEBUG", str(depth))
        self._monkeypatch.setattr(self._context, "debug_files", Folder(Path(debug.FOLDER)))
        self._captured.readouterr()
        with Program(self._context, compiled()) as program:
            program.write(program.compiled.graph.inputs[0], np.ones((1, 6, 8, 3), np.float32))
            for _ in range(runs):
                program.run()
        out, err = self._captured.readouterr()
        assert out == ""
        return err.splitlines()


@pytest.fixture
def shown(
    context: Context, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Iterator[Shown]:
    monkeypatch.chdir(tmp_path)
    with context.programs.paused():
        yield Shown(context, monkeypatch, capsys)


class TestLevels:
    @pytest.mark.parametrize(
        ("value", "found"),
        [("0", 0), ("1", 1), ("5", 5), ("", 0), ("6", 0), ("-1", 0), ("1 ", 0), ("true", 0), ("*", 0), ("٣", 0)],
    )
    def test_only_digits_from_0_to_5_count(self, value: str, found: int) -> None:
        assert level({"DEBUG": value}) == found

    def test_without_the_variable(self) -> None:
        assert level({}) == 0

    def test_a_document_has_the_table(self) -> None:
        rows = re.findall(r"^\| ([1-5]) \| (.*) \|$", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.M)
        assert [(int(number), what) for number, what in rows] == list(LEVELS.items())

    def test_0_shows_nothing(self, shown: Shown, tmp_path: Path) -> None:
        assert shown(0) == []
        assert list(tmp_path.iterdir()) == []

    def test_1_shows_decisions_and_compile_times(self, shown: Shown, tmp_path: Path) -> None:
        lines = shown(1)
        plan = compiled()
        assert all(line.startswith("debug: ") for line in lines)
        assert [line for line in lines if "pass hoist_convolution: applied " in line]
        assert f"debug: {plan.plan.total_bytes:,} bytes planned" in "\n".join(lines)
        timed = [line.split()[1] for line in lines if re.search(r" compiled in [0-9.]+ ms$", line)]
        assert timed == [kernel.name for kernel in plan.kernels]
        assert list(tmp_path.iterdir()) == []

    def test_2_shows_each_dispatch_of_each_run_in_columns(self, shown: Shown) -> None:
        lines, kernels = shown(2, runs=3), compiled().kernels
        headers = [number for number, line in enumerate(lines) if "GMAC/s" in line]
        assert len(headers) == 3
        for at in headers:
            assert "waited for" in lines[at - 1]
            rows = lines[at + 1 : at + 1 + len(kernels)]
            assert {len(row) for row in rows} == {len(lines[at])}
            for number, (row, kernel) in enumerate(zip(rows, kernels, strict=True)):
                cells = row.split()
                assert (cells[0], cells[1]) == (str(number), kernel.name)
                assert cells[2:4] == ["x".join(map(str, kernel.grid)), "x".join(map(str, kernel.local))]
                assert float(cells[5]) > 0

    def test_2_gives_no_times_where_nothing_is_executed(self, shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(
            "texelflow.gpu_delegate.targets.gl.span_clock.choose_clock", lambda signs: ClockChoice("none", "a fake")
        )
        lines = shown(2)
        rows = lines[-len(compiled().kernels) :]
        assert "no times: a fake" in "\n".join(lines)
        assert all(row.split()[5:] == ["-", "-", "-"] for row in rows)

    def test_2_shows_passes_around_the_network_in_the_same_columns(
        self, context: Context, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        program, cost = compile_compute(context, EMPTY, "empty"), Cost(0, 1000, 24)
        for depth in ("0", "1", "2"):
            monkeypatch.setenv("DEBUG", depth)
            context.gl.glUseProgram(program)
            with program_log.logged_pass(context, "empty", (3, 2, 1), (1, 1, 1), cost):
                context.gl.glDispatchCompute(3, 2, 1)
        (row,) = capsys.readouterr().err.splitlines()
        assert len(row) == len(program_log.DISPATCH_HEADER)
        assert row.split()[:4] == ["empty", "3x2x1", "1x1x1", "1,024"]
        context.gl.glDeleteProgram(program)

    def test_3_shows_places_and_barriers(self, shown: Shown) -> None:
        lines, plan = shown(3), compiled()
        assert set(plan_lines(plan)) | set(barrier_lines(plan)) <= set(lines)
        for record in plan.records:
            name, start = plan.graph.tensors[record.tensor].name, f"{plan.plan.offsets[record.tensor]:,}"
            assert [line for line in lines if line.split()[:1] == [start] and f" {name[:40]} " in line]
        assert len([line for line in lines if "texture fetch" in line]) == sum(
            bool(bits & TEXTURE_FETCH) for bits in plan.barriers
        )

    def test_4_writes_the_glsl(self, shown: Shown, tmp_path: Path, context: Context) -> None:
        lines = shown(4)
        written = sorted((tmp_path / debug.FOLDER).iterdir())
        texts, sources = {path.read_text() for path in written}, {kernel.source for kernel in compiled().kernels}
        assert texts == sources or (texts > sources and not context.is_software)  # whose peaks are not measured
        assert {path.name.removesuffix(".comp") for path in written} >= {
            safe_name(kernel.name) for kernel in compiled().kernels
        }
        assert f"debug: files are written to {tmp_path / debug.FOLDER}" in lines

    def test_5_dumps_the_tensors_of_the_first_runs(self, shown: Shown, tmp_path: Path) -> None:
        shown(5, runs=MOST_DUMPED_RUNS + 1)
        plan = compiled()
        dumped = {path.name: np.load(path) for path in (tmp_path / debug.FOLDER).glob("*.npy")}
        assert len(dumped) == MOST_DUMPED_RUNS * (len(plan.stored) + 1)
        (given,) = [values for name, values in dumped.items() if name.startswith("run0-input-")]
        assert (given.shape, given.min(), given.max()) == ((1, 6, 8, 3), 1, 1)
        shapes = sorted(plan.graph.tensors[tensor].shape for tensor in plan.stored)
        assert sorted(v.shape for name, v in dumped.items() if re.match(r"run1-\d{3}-", name)) == shapes

    def test_each_level_shows_what_those_above_show(self, shown: Shown) -> None:
        before: set[str] = set()
        for depth in range(6):
            lines = {re.sub(r" *[\d.]+", " 0", line) for line in shown(depth)}  # times take more digits under load
            assert before <= lines
            before = lines


class TestFiles:
    @pytest.mark.parametrize(
        ("label", "name"),
        [
            ("conv+relu", "conv+relu"),
            ("../../etc/passwd", "etc_passwd"),
            ("/a/b", "a_b"),
            ("..", "unnamed"),
            ("", "unnamed"),
            ("a\0b\n\x1b[31m", "a_b_31m"),
            ("x" * 999, "x" * debug.MOST_NAME),
            ("naïve 网络", "na_ve"),
        ],
    )
    def test_names_are_those_of_files_in_the_folder(self, label: str, name: str) -> None:
        assert safe_name(label) == name

    def test_equal_labels_are_told_apart(self, tmp_path: Path) -> None:
        folder = Folder(tmp_path / "files")
        for content in (b"one", b"two", b"one", b"three"):
            folder.write("conv", "comp", content)
        found = {path.name: path.read_bytes() for path in (tmp_path / "files").iterdir()}
        assert found == {"conv.comp": b"one", "conv-2.comp": b"two", "conv-3.comp": b"three"}

    def test_a_folder_takes_no_more_than_it_may(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        folder = Folder(tmp_path / "files", most_bytes=10)
        for number in range(5):
            folder.write(f"tensor{number}", "npy", bytes(4))
        assert sum(path.stat().st_size for path in (tmp_path / "files").iterdir()) == 8
        assert capsys.readouterr().err.count("its size limit") == 1

    def test_what_is_there_already_takes_no_room(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        folder = Folder(tmp_path / "files", most_bytes=10)
        for label in ("kernel", "kernel", "kernel", "other"):
            folder.write(label, "comp", bytes(4))
        assert {path.name for path in (tmp_path / "files").iterdir()} == {"kernel.comp", "other.comp"}
        assert capsys.readouterr().err.count("\n") == 1

    def test_nor_more_files(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(debug, "MOST_FILES", 50)
        folder = Folder(tmp_path / "files")
        for number in range(55):
            folder.write(f"kernel{number}", "comp", b"")
        assert len(list((tmp_path / "files").iterdir())) == 50

    def test_a_place_that_takes_nothing_is_told_once(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "file").write_text("in the way")
        folder = Folder(tmp_path / "file" / "folder")
        for number in range(3):
            folder.write(f"tensor{number}", "npy", bytes(4))
        assert capsys.readouterr().err.count("nothing is written") == 1

    def test_links_there_are_replaced(self, tmp_path: Path) -> None:
        (tmp_path / "mine").write_bytes(b"precious")
        (tmp_path / "files").mkdir()
        (tmp_path / "files" / "soft.npy").symlink_to(tmp_path / "mine")
        (tmp_path / "files" / "hard.npy").hardlink_to(tmp_path / "mine")
        folder = Folder(tmp_path / "files")
        for name in ("soft", "hard"):
            folder.write(name, "npy", b"a tensor")
            assert (tmp_path / "files" / f"{name}.npy").read_bytes() == b"a tensor"
        assert (tmp_path / "mine").read_bytes() == b"precious"

    def test_terminals_obey_no_name(self, capsys: pytest.CaptureFixture[str]) -> None:
        debug.say("a\x1b[31mname\n")
        assert capsys.readouterr().err == "a\N{REPLACEMENT CHARACTER}[31mname\N{REPLACEMENT CHARACTER}\n"


def test_each_barrier_has_its_reason() -> None:
    """Dispatch 1 reads what 0 wrote; 0 writes again what 1 has read in the run before."""
    dispatches = [[Access(0, 0, 8, STORAGE, True)], [Access(0, 0, 8, TEXTURE_FETCH), Access(0, 8, 9, STORAGE, True)]]
    bits = find_cyclic_barriers(dispatches)
    assert bits == (STORAGE, TEXTURE_FETCH)
    assert reasons(dispatches, bits) == (
        ((1, dispatches[0][0]), (0, dispatches[0][0])),
        ((0, dispatches[1][0]),),
    )
    assert reasons(dispatches, (0, 0)) == ((), ())


def label_of(context: Context, kind: int, name: int) -> str:
    """What OpenGL has stored as the label of an object."""
    room, get = ctypes.create_string_buffer(999), context._loader.load_opengl_function("glGetObjectLabel")
    ctypes.CFUNCTYPE(None, ctypes.c_uint, ctypes.c_uint, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(get)(
        kind, name, len(room), None, room
    )
    return room.value.decode()


class TestNames:
    def test_objects_are_called_what_the_lines_call_them(self, context: Context) -> None:
        with Program(context, compiled()) as program:
            graph = program.compiled.graph
            for tensor in program.compiled.stored:
                place = program.range_of(tensor)
                assert label_of(context, opengl.TEXTURE, place.texture) == graph.tensors[tensor].name
            arena = label_of(context, opengl.BUFFER, program.output.buffer)
            assert arena == f"tensors of {program.compiled.source.name}"
            names = {label_of(context, opengl.PROGRAM, step.program) for step in program._steps}
            assert names == {kernel.name for kernel in program.compiled.kernels}

    @pytest.mark.parametrize(
        ("name", "text"),
        [("a\0b", "a b"), ("x" * 300, "x" * 255), ("网" * 100, "网" * 85), ("\ud800", "?"), ("", "")],
    )
    def test_labels_are_what_opengl_takes(self, context: Context, name: str, text: str) -> None:
        assert label_text(name).decode() == text
        program = compile_compute(context, EMPTY, name)
        assert label_of(context, opengl.PROGRAM, program) == text
        context.gl.glDeleteProgram(program)
        with context.scope(name):
            context.check_errors("a scope")

    def test_scopes_nest_and_end_with_an_error(self, context: Context) -> None:
        depth = 0x826D  # GL_DEBUG_GROUP_STACK_DEPTH
        before = context.gl.integer(depth)
        with contextlib.suppress(KeyError), context.scope("outer"), context.scope("inner"):
            assert context.gl.integer(depth) == before + 2
            raise KeyError
        assert context.gl.integer(depth) == before


HIGH, PERFORMANCE, UNDEFINED, ERROR, MARKER, OTHER = 0x9146, 0x8250, 0x824E, 0x824C, 0x8268, 0x8251


@pytest.fixture
def own_context(context: Context) -> Iterator[Context]:
    """A context of its own: texts are told once in each."""
    with open_context() as own:
        yield own
    context.make_current()


def insert(context: Context, kind: int, text: bytes, severity: int = HIGH) -> None:
    """Have the driver report something, as a third party of OpenGL's may."""
    address = context._loader.load_opengl_function("glDebugMessageInsert")
    ctypes.CFUNCTYPE(None, *[ctypes.c_uint] * 4, ctypes.c_int, ctypes.c_char_p)(address)(
        0x8249, kind, 7, severity, len(text), text
    )


class TestMessages:
    def test_a_drivers_error_ends_what_was_being_done(self, own_context: Context) -> None:
        own_context.check_messages("nothing")
        own_context.gl.glBindTexture(0xDEAD, 0)
        whose = " in glBindTexture" if own_context.is_software else ""  # as Mesa says it
        with pytest.raises(DeviceError, match="while replaying: GL_INVALID_ENUM" + whose):
            own_context.check_messages("replaying")
        own_context.check_messages("replaying")
        assert own_context.gl.glGetError() == 0

    def test_complaints_become_warnings_each_text_once(self, own_context: Context) -> None:
        for _ in range(3):
            insert(own_context, UNDEFINED, b"a stale\nname")
        with pytest.warns(
            OpenGLWarning, match="OpenGL, while in stage network: undefined behavior: a stale name"
        ) as told:
            own_context.check_messages("in stage network")
        assert len(told) == 1
        insert(own_context, UNDEFINED, b"a stale\nname")
        own_context.check_messages("in stage network")

    def test_a_warning_fails_a_test(self, own_context: Context) -> None:
        insert(own_context, UNDEFINED, b"unseen")
        with pytest.raises(OpenGLWarning, match="unseen"):
            own_context.check_errors("the test")

    def test_one_that_is_left_comes_at_the_end(self, context: Context) -> None:
        own = open_context()
        insert(own, UNDEFINED, b"too late")
        with pytest.warns(OpenGLWarning, match="too late"):
            own.release()
        context.make_current()

    def test_an_error_on_the_way_has_the_only_line(self, context: Context) -> None:
        def fail() -> None:
            with open_context() as own:
                insert(own, UNDEFINED, b"beside the point")
                raise DeviceError("the reason")

        with pytest.raises(DeviceError, match="the reason"):
            fail()
        context.make_current()

    @pytest.mark.parametrize(
        ("kind", "severity"), [(MARKER, HIGH), (OTHER, HIGH), (PERFORMANCE, HIGH), (UNDEFINED, 0x826B)]
    )
    def test_chatter_is_not_kept(self, own_context: Context, kind: int, severity: int) -> None:
        insert(own_context, kind, b"chatter", severity)
        with own_context.scope("ours"):
            own_context.check_errors("the test")

    def test_how_fast_it_is_is_told_to_those_who_ask(self, context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DEBUG", "1")
        with open_context() as own:
            insert(own, PERFORMANCE, b"a shader is compiled again")
            with pytest.warns(OpenGLWarning, match="performance: a shader is compiled again"):
                own.check_messages("a frame")
        context.make_current()

    @pytest.mark.parametrize("depth", [0, 1])
    def test_only_those_who_ask_have_the_driver_report_at_once(
        self, depth: int, context: Context, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It takes threads of its own away from the driver."""
        monkeypatch.setenv("DEBUG", str(depth))
        with open_context() as own:
            assert own.gl.integer(opengl.DEBUG_OUTPUT_SYNCHRONOUS) == depth
        context.make_current()

    def test_they_may_come_from_threads_of_the_driver(self, own_context: Context) -> None:
        """Whoever takes them meanwhile gets each once, and an error of another thread ends what is being done."""
        messages, text, found = own_context._messages, ctypes.create_string_buffer(b"late"), list[tuple[int, str]]()

        def report(kind: int, times: int) -> None:
            for _ in range(times):
                messages._callback(0x8246, kind, 1, HIGH, 4, ctypes.addressof(text), None)

        worker = threading.Thread(target=report, args=(UNDEFINED, 20_000))
        worker.start()
        while worker.is_alive():
            found += messages.take()
        found += messages.take()
        assert set(found) == {(UNDEFINED, "late")}
        other = threading.Thread(
            target=messages._callback, args=(0x8246, ERROR, 1, HIGH, 4, ctypes.addressof(text), None)
        )
        other.start()
        other.join()
        with pytest.raises(DeviceError, match="while waiting: late"):
            own_context.check_messages("waiting")

    def test_a_driver_that_complains_all_the_time_fills_no_memory(self, own_context: Context) -> None:
        def complain(times: int) -> None:
            for number in range(times):
                insert(own_context, UNDEFINED, b"buffer %d is stale" % number)
                own_context.check_messages("a frame")

        with pytest.warns(OpenGLWarning) as told:
            complain(500)
        assert len(told) == 32

    def test_a_shader_that_does_not_compile_is_told_once(self, own_context: Context) -> None:
        with pytest.raises(DeviceError, match="does not compile"):
            compile_compute(own_context, EMPTY.replace("{}", "{ nonsense(); }"), "broken")
        own_context.check_errors("the test")

    @pytest.mark.gl
    def test_the_command_line_shows_a_line(self) -> None:
        code = """
import ctypes, sys
from texelflow.app.cli import main
from tests.gpu_delegate.base.test_debug import UNDEFINED, insert, open_context
def slow(*_):
    with open_context() as context:
        for _ in range(3):
            insert(context, UNDEFINED, b"a stale name")
            context.check_messages("in stage network")
import texelflow.app.models.catalogue
texelflow.app.models.catalogue.fetch = slow
main(["models", "fetch", "selfie"])
"""
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=PATIENCE_S, check=False
        )
        assert done.stderr == "texelflow: OpenGL, while in stage network: undefined behavior: a stale name\n"

    @pytest.mark.gl
    @pytest.mark.parametrize("version", ["3.3", "4.2"])
    def test_older_contexts_are_as_they_were(self, version: str) -> None:
        code = """
from texelflow.gpu_delegate.targets.gl.context import DRAWING, open_context
with open_context(DRAWING) as context:
    with context.scope("stage"):
        context.check_messages("stage")
    context.check_errors("stage")
"""
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", code],
            env={**os.environ, "MESA_GL_VERSION_OVERRIDE": version, "MESA_EXTENSION_OVERRIDE": "-GL_KHR_debug"},
            capture_output=True, text=True, cwd=ROOT, timeout=PATIENCE_S, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
