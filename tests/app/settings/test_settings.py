"""What live can be told: values are valid or refused in one line, and every setting is an option of the verb."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_args

import pytest
import typer
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from tests.helpers.choices import any_settings
from tests.helpers.commands import Command
from texelflow.app.frame.inference.backends import Backend
from texelflow.app.frame.looks.effects import EFFECTS
from texelflow.app.models.entries import CATALOGUE, SEGMENTERS
from texelflow.app.picture.preprocess import Fit, Preprocessing
from texelflow.app.picture.size import parse_size
from texelflow.app.settings.config import read_config
from texelflow.app.settings.flags import flag_of, with_settings
from texelflow.app.settings.settings import Settings, changed, parse_point, specs, while_running, with_values
from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.model.graph import Hybrid
from texelflow.gpu_delegate.model.layout import Precision
from texelflow.gpu_delegate.plan.memory.memory_options import MemoryMode

SPECS = {spec.name: spec for spec in specs()}
RAW = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.dates(),
        *(st.sampled_from(spec.choices) for spec in specs() if spec.choices),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.text(), inner, max_size=2)),
    max_leaves=3,
)  # fmt: skip


class TestSpecs:
    def test_defaults_are_valid_and_in_order(self) -> None:
        defaults: dict[str, Any] = {spec.name: spec.default for spec in specs()}
        assert with_values(Settings(), defaults) == Settings(**defaults) == Settings()
        sections = [spec.section for spec in specs()]
        assert " ".join(dict.fromkeys(sections)) == "camera model picture mask framing work output window"
        assert sections == sorted(sections, key=list(dict.fromkeys(sections)).index), "no section is in two pieces"

    def test_each_says_what_it_is_for(self) -> None:
        for spec in specs():
            assert spec.help[0].isupper()
            assert spec.help[-1] == "."
            assert len(spec.help) <= 80

    def test_what_may_be_chosen_is_what_there_is(self) -> None:
        assert SPECS["effect"].choices == EFFECTS
        assert SPECS["fit"].choices == get_args(Fit)
        assert SPECS["preprocessing"].choices == get_args(Preprocessing)
        assert SPECS["precision"].choices == get_args(Precision)
        assert SPECS["hybrid"].choices == get_args(Hybrid)
        assert SPECS["memory"].choices == get_args(MemoryMode)
        assert SPECS["backend"].choices == ("auto", *get_args(Backend))
        assert SPECS["model"].choices == (*CATALOGUE, "body-hands")
        assert SPECS["small_model"].choices == SEGMENTERS == ("selfie", "selfie-landscape")


class TestValues:
    @pytest.mark.parametrize(
        ("name", "raw", "complaint"),
        [
            ("efect", "blur", "efect is no setting; did you mean effect?"),
            ("", 1, " is no setting"),
            ("effect", "Blur", "effect Blur: one of tint, "),
            ("effect", 1, "effect 1: one of tint, "),
            ("smooth", 1.5, "smooth 1.5: a number from 0 to 1 is needed"),
            ("smooth", float("nan"), "smooth nan: a number from 0 to 1 is needed"),
            ("smooth", True, "smooth true: a number"),
            ("smooth", "0.5", "smooth 0.5: a number"),
            ("blur", 3.5, "blur 3.5: a number from 4 to 500, or 0, is needed"),
            ("gamma", 0, "gamma 0: a number from 0.1 to 10 is needed"),
            ("every", 2.0, "every 2: a whole number from 1 to 60 is needed"),
            ("mirror", 1, "mirror 1: true or false is needed"),
            ("mirror", "yes", "mirror yes: true or false is needed"),
            ("size", "640", "size 640: a size such as 640x480, 16384 a side at most, is needed"),
            ("size", "0x480", "size 0x480: a size"),
            ("background", "#36c", "background #36c: an image, a video, or a color such as red or #3366cc is needed"),
            ("size", "640x99999", "size 640x99999: a size"),
            (
                "channel",
                65537,
                "channel 65537: a class' name, its number from 0 to 65536, several with commas, or -1 is needed",
            ),
            ("channel", 2.0, "channel 2: a class' name"),
            ("channel", True, "channel true: a class' name"),
            ("camera", [[0]], "camera (a list of 1): text on one line, or a list of up to 9 such, is needed"),
            ("camera", [], "camera (a list of 0): text on one line, "),
            ("camera", ["pattern", ""], "camera (a list of 2): text on one line, "),
            ("camera", ["pattern"] * 10, "camera (a list of 10): text on one line, "),
            ("camera", 0.0, "camera 0: text on one line, or a list of up to 9 such, is needed"),
            ("model", ["selfie"], "model (a list of 1): text on one line is needed"),
            ("record", "a\nb", r"record 'a\nb': text on one line is needed"),
            ("record", "x" * 5000, "record xxx"),
            ("record", "\udcff", "record '"),
        ],
    )
    def test_wrong_ones_are_refused_in_one_line(self, name: str, raw: object, complaint: str) -> None:
        with pytest.raises(UsageError) as caught:
            with_values(Settings(), {"mirror": True, name: raw})
        assert str(caught.value).startswith(complaint)
        assert str(caught.value).isprintable()

    @pytest.mark.parametrize(("raw", "kept"), [(-1, ""), ("-1", ""), (0, "0"), (1000, "1000"), ("person", "person")])
    def test_classes_have_numbers_as_in_earlier_versions_or_names(self, raw: object, kept: str) -> None:
        assert with_values(Settings(), {"channel": raw}).channel == kept

    def test_numbers_without_end(self) -> None:
        for name, number in (("every", 16**9000), ("fps", -(16**9000)), ("mirror", 16**9000), ("record", 16**9000)):
            with pytest.raises(UsageError, match=rf"^{name} \(that many\): "):
                with_values(Settings(), {name: number})

    @given(st.sampled_from(sorted(SPECS)), RAW)
    @hypothesis_settings(deadline=None)
    def test_whatever_comes_is_a_value_or_refused(self, name: str, raw: object) -> None:
        spec, said = SPECS[name], ""
        try:
            value: Any = getattr(with_values(Settings(), {name: raw}), name)
        except UsageError as error:
            said = str(error)
        if said:
            assert said.isprintable()
            assert len(said) < 300
            return
        if isinstance(raw, list):
            assert spec.kind == "texts"
            return
        assert type(value) is type(spec.default)
        assert value == raw or str(raw) == value or str(raw).startswith("~/")
        assert spec.kind != "choice" or value in spec.choices
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            assert spec.low <= value <= spec.high or (spec.zero and value == 0)

    @given(any_settings, any_settings)
    @hypothesis_settings(deadline=None)
    def test_what_has_changed(self, before: Settings, after: Settings) -> None:
        names = changed(before, after)
        assert with_values(before, {name: getattr(after, name) for name in names}) == after
        assert changed(before, before) == ()
        now, waiting = while_running(before, after)
        assert {*changed(before, now)} | {*waiting} == {*names}
        restarts = {
            "backend",
            "compile_budget",
            "cpu",
            "fit",
            "gl_api",
            "gpu",
            "detail",
            "hybrid",
            "json_lines",
            "keep_held",
            "memory",
            "most",
            "planner",
            "precision",
            "preprocessing",
            "private",
            "reorder",
            "threads",
        }
        assert {*waiting} <= restarts | {"tune"}
        assert ("private" in waiting) == (before.private and not after.private), "what hides counts at once"
        assert not {*waiting} & {*changed(before, now)}

    def test_home_is_known_where_no_shell_knows_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", "/home/ada")
        monkeypatch.setenv("USERPROFILE", "/home/ada")
        values = {"record": "~/a.mp4", "model": "~/m.tflite", "mattes": "a~/b", "cutouts": "~ada"}
        expected = Settings(model="/home/ada/m.tflite", out="/home/ada/a.mp4", masks="a~/b", cutouts="~ada")
        assert with_values(Settings(), values) == expected

    def test_several_cameras(self) -> None:
        for raw, camera in ((["0", 1], ("0", "1")), (("a.mp4", "~/b"), ("a.mp4", f"{Path.home()}/b")), ([2], "2")):
            assert with_values(Settings(), {"camera": raw}) == Settings(camera)
        assert Settings(("0", "1")).cameras == ("0", "1")
        assert Settings("0").cameras == ("0",)

    def test_numbers_of_cameras_may_be_written_as_such_and_sizes_be_read(self) -> None:
        assert with_values(Settings(), {"camera": 2, "fps": 0, "gamma": 2}) == Settings("2", fps=0.0, gamma=2.0)
        assert parse_size(Settings().size) == (640, 480)
        assert not any(map(parse_size, ("640", "640x", "0x9", "640x480x1", "-1x1", "640x480\n", "999999x1")))


def verb(heard: list[Any]) -> typer.Typer:
    """A program with one verb that has all settings."""
    program = typer.Typer(rich_markup_mode="rich")

    @program.command()
    @with_settings("live")
    def live(
        flags: dict[str, object], name: str, json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False
    ) -> None:
        """A verb of its own."""
        heard.append((name, json, flags, with_values(Settings(), flags, flag_of)))

    return program


class TestFlags:
    def run(self, *arguments: str) -> tuple[Any, Callable[[], Any]]:
        heard: list[Any] = []
        result = CliRunner().invoke(verb(heard), arguments, env={"COLUMNS": "200", "TERM": "dumb"})
        return result, lambda: heard[0]

    def test_those_that_are_given_and_no_others(self) -> None:
        given = ["--light-wrap", "0.25", "--no-edges", "-m", "x.tflite", "--mirror", "--every", "3"]
        given += ["--camera", "1", "--camera", "a.mp4"]
        result, heard = self.run("here", "--json", *given)
        assert result.exit_code == 0, result.output
        values: dict[str, Any] = {
            "camera": ["1", "a.mp4"],
            "model": "x.tflite",
            "light_wrap": 0.25,
            "mirror": True,
            "edges": False,
            "every": 3,
        }
        assert heard() == ("here", True, values, Settings(**values | {"camera": ("1", "a.mp4")}))

    def test_none(self) -> None:
        assert self.run("here")[1]() == ("here", False, {}, Settings())

    def test_help_has_every_setting_in_a_panel_of_its_section(self) -> None:
        result, _ = self.run("--help")
        assert result.exit_code == 0
        assert "A verb of its own." in result.output
        assert "--json" in result.output
        for spec in specs():
            assert f"{spec.flag}," in result.output if spec.also else f"{spec.flag} " in result.output
            assert f" {spec.section.capitalize()} " in result.output
        assert "--no-mirror" in result.output
        assert "from 0 to 1" in result.output
        assert "blur by default" in result.output

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["--smooth", "much"], "'--smooth'"),
            (["--every", "1.5"], "'--every'"),
            (["--mirror=no"], "--mirror"),
            (["--efect", "blur"], "--efect"),
        ],
    )
    def test_what_typer_refuses(self, arguments: list[str], words: str) -> None:
        result, _ = self.run("here", *arguments)
        assert result.exit_code == 2
        assert words in result.output

    @pytest.mark.parametrize(
        ("arguments", "complaint"),
        [
            (["--smooth", "2"], "--smooth 2: a number from 0 to 1 is needed"),
            (["--light-wrap", "inf"], "--light-wrap inf: a number from 0 to 1 is needed"),
            (["--effect", "glow"], "--effect glow: one of tint, "),
            (["--size", "big"], "--size big: a size such as 640x480, 16384 a side at most, is needed"),
        ],
    )
    def test_what_settings_refuse(self, arguments: list[str], complaint: str) -> None:
        result, _ = self.run("here", *arguments)
        assert isinstance(result.exception, UsageError)
        assert str(result.exception).startswith(complaint)


class TestLive:
    """The verb itself; nothing is opened before all that was said is known to be right."""

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["--smooth", "2"], "--smooth 2: a number from 0 to 1 is needed"),
            (["--smooth", "much"], "'--smooth'"),
            (["--efect", "blur"], "--efect"),
            (["--softness", "0.5"], "--softness; use feather, the width of a soft edge in pixels"),
            (["--config", "none.toml"], "cannot read none.toml: No such file or directory; --dump-config prints one"),
            (["--config", "wrong.toml"], "wrong.toml, line 3: [mask] smoth is no setting; did you mean smooth?"),
        ],
    )
    def test_what_is_wrong_is_one_line(
        self,
        arguments: list[str],
        words: str,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.chdir(tmp_path)
        Path("wrong.toml").write_text("[mask]\n\nsmoth = 1\n")
        assert words in Command(capsys)("live", *arguments).complaint

    def test_its_dump_is_what_flags_and_file_make(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(tmp_path)
        Path("mine.toml").write_text("[mask]\nsmooth = 0.25\nedges = false\n")
        told = Command(capsys)("live", "--config", "mine.toml", "--smooth", "0.75", "--dump-config")
        assert told.code == 0
        Path("dumped.toml").write_text(told.out, encoding="utf-8")
        assert read_config(Path("dumped.toml")) == Settings(smooth=0.75, edges=False)


@pytest.mark.parametrize("text", ["0.5,0.5", "0,1", "0.40700000000000003,1e-05"])
def test_points_are_two_numbers_from_0_to_1(text: str) -> None:
    assert parse_point(with_values(Settings(), {"pan": text}).pan) == tuple(map(float, text.split(",")))


@pytest.mark.parametrize("text", ["", "0.5", "0.5,0.5,0.5", "0.5;0.5", "1.1,0", "-0.1,0", "nan,0", "inf,0", "a,b"])
def test_others_are_no_points(text: str) -> None:
    with pytest.raises(UsageError, match=r"pan .*: two numbers from 0 to 1 with a comma, such as 0\.5,0\.5, is needed"):
        with_values(Settings(), {"pan": text})
