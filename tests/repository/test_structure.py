"""The shape of the source itself: who may import what, that no file grows without end, and where tests lie."""

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.tools.structure import LAYERS, imported, imports_among, layer_of, source_of

ROOT = Path(__file__).parents[2]
ENGINE = sorted((ROOT / "gpu_delegate").rglob("*.py"))
MODERNGL = {"moderngl", "glcontext"}
MAY_IMPORT_MODERNGL = {  # where contexts are made, and where a caller's context, textures and buffers come in
    *("targets/gl/context.py", "targets/gl/native_context.py"),
    *("delegate/delegate.py", "delegate/worker.py", "delegate/gl_objects.py"),
}
MOST_LINES = 800
OF_TARGETS = {"glsl", "gl", "opengl", "llvm", "llvmlite"}  # words of names that nothing in front of targets imports
OF_OPENGL = {"buffers", "fullscreen_drawing", "gl_pictures", "offscreen_target", "readback", "tensor_view", "upload"}
SAME_PROTOCOL = {
    "main",  # what runs when Python is started with a module
    "Program",  # the public class holds one of the engine's, and does the same on a thread of its own
}


def top_levels(file: Path) -> set[str]:
    return {name.partition(".")[0] for name in imported(file)}


def test_the_scan_finds_the_engine() -> None:
    names = {file.name for file in ENGINE}
    assert {"context.py", "runtime.py", "pipeline.py", "convolution.py"} <= names
    context, runtime = (ROOT / "gpu_delegate" / "targets" / "gl" / name for name in ("context.py", "runtime.py"))
    assert top_levels(context) & MODERNGL
    assert "gpu_delegate.targets.gl.context.Context" in set(imported(runtime))


def test_a_name_has_one_meaning() -> None:
    """Whoever finds a name of the top level anywhere in the program knows what it is."""
    places: dict[str, list[str]] = {}
    for folder in ("app", "gpu_delegate"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            for name in source_of(file).names:
                places.setdefault(name, []).append(str(file.relative_to(ROOT)))
    assert len(places) > 500, "the scan finds the program's names"
    twice = {name: files for name, files in places.items() if len(files) > 1 and name not in SAME_PROTOCOL}
    assert not twice


def test_pictures_are_drawn_by_any_device() -> None:
    """What draws knows the protocol of devices, not OpenGL: of that at most how parts of buffers are called."""
    of_opengl = {f"app.frame.textures.{name}" for name in OF_OPENGL}
    for folder in ("drawing", "refinement"):
        for file in (ROOT / "app" / "frame" / folder).glob("*.py"):
            for name in imported(file):
                module = name.rpartition(".")[0]
                assert module not in of_opengl, f"{file.name} imports {name}"
                assert ".targets.gl." not in name or name.endswith(("BufferSpan", "BufferRange")), file.name


@pytest.mark.parametrize("folder", LAYERS)
def test_no_import_runs_upward(folder: str) -> None:
    """A layer may use itself and those before it, also where only types are meant: whoever reads one needs no other."""
    layers = {layer for line in LAYERS[folder] for layer in line}
    packages = {path.parent for path in (ROOT / folder).rglob("__init__.py")} - {ROOT / folder, ROOT / "app" / "api"}
    assert layers <= {path.relative_to(ROOT / folder).as_posix() for path in packages}
    around = {ROOT / folder / layer.rpartition("/")[0] for layer in layers}
    assert not [path for path in packages - around if layer_of(path / "x.py", folder) is None], "no place in the order"
    for file, used in imports_among(folder.partition("/")[0]).items():
        own = layer_of(file, folder)
        for other in used if own else ():
            layer = layer_of(other, folder)
            beside = other.parent == ROOT / folder and other.name != "__init__.py" and "/" in folder
            assert not beside, f"{file.relative_to(ROOT)} imports {other.relative_to(ROOT)}, which is above"
            if own and layer and own != layer:
                assert layer[0] < own[0], f"{file.relative_to(ROOT)} imports {other.relative_to(ROOT)}"


@pytest.mark.parametrize("top", ["gpu_delegate", "app"])
def test_no_files_import_each_other_in_a_circle(top: str) -> None:
    uses = {file: set(used) for file, used in imports_among(top).items()}
    while uses:
        of_others = frozenset[Path]().union(*uses.values())
        free = [file for file, used in uses.items() if file not in of_others or not used & uses.keys()]
        if not free:
            break
        uses = {file: used for file, used in uses.items() if file not in free}
    assert not uses, sorted(str(file.relative_to(ROOT)) for file in uses)


def test_the_guide_tells_the_layers_in_their_order() -> None:
    rows = re.findall(r"^\| (`[^|]+/`) \|", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.M)
    told = [re.findall(r"`([\w/]+)/`", row) for row in rows]
    first = told.index(["base"])
    assert told[first : first + len(LAYERS["gpu_delegate"])] == [list(line) for line in LAYERS["gpu_delegate"]]


def test_a_file_is_found_by_its_name() -> None:
    files = [file for top in ("app", "gpu_delegate") for file in (ROOT / top).rglob("*.py")]
    names = Counter(file.name for file in files if not file.name.startswith("__"))
    assert len(names) > 500, "the scan finds the program's files"
    assert not [name for name, count in names.items() if count > 1]


def test_plans_and_kernels_are_of_no_language() -> None:
    """A further target is a folder beside those that are there: nothing in front of them knows of any."""
    floors = [layer for line in LAYERS["gpu_delegate"] for layer in line]
    in_front = floors[: floors.index("targets/glsl")]
    for file in ENGINE:
        if file.relative_to(ROOT / "gpu_delegate").parts[0] in in_front:
            words = {word for name in imported(file) for part in name.split(".") for word in part.lower().split("_")}
            assert not words & OF_TARGETS, file


def test_engine_imports() -> None:
    """The engine is usable without the program; OpenGL and LLVM come in where they are meant to."""
    for file in ENGINE:
        tops, place = top_levels(file), file.relative_to(ROOT / "gpu_delegate").as_posix()
        assert not tops & {"app", "assets", "tests", "texelflow"}, file
        assert "llvmlite" not in tops or place == "targets/llvm/compiler.py", file
        assert not tops & MODERNGL or place in MAY_IMPORT_MODERNGL, file


@pytest.mark.parametrize("folder", ["app", "gpu_delegate", "tests"])
def test_files_stay_short_and_say_what_they_are(folder: str) -> None:
    for file in sorted((ROOT / folder).rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        assert text.count("\n") <= MOST_LINES, file
        assert re.match(r'(#.*\n)*"""\s*\S', text), file


@pytest.mark.parametrize("folder", ["app", "gpu_delegate"])
def test_a_package_imports_its_own_files_by_relative_names(folder: str) -> None:
    for file in sorted((ROOT / folder).rglob("*.py")):
        own = [name for name in source_of(file).whole if name.startswith((f"texelflow.{folder}", folder + "."))]
        assert not own, f"{file} imports {own}, of its own package, by its whole name"


def test_tests_lie_as_the_code_that_they_are_about() -> None:
    """Names of files are unique, so that each can be found by its name alone."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    packages = (path for places in ("*", "tools/*") for path in (ROOT / "tests").glob(f"{places}/__init__.py"))
    of_tests = {path.parent for path in packages} | {ROOT / "tests" / "repository"}
    for file in files:
        place = ROOT / file.relative_to(ROOT / "tests").parent
        assert place.is_dir() or file.parent in of_tests, f"{file} lies in a folder that no code has"
        assert file.parent != ROOT / "tests", f"{file} is about no file of the repository's top level"
    assert sorted({file.name for file in files}) == sorted(file.name for file in files)
