"""Files of settings: what they say and where, whatever they hold, and what becomes of them while they are watched."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.helpers.choices import any_settings
from texelflow.app.settings.config import MOST_BYTES, default_path, dump, key_lines, read_config
from texelflow.app.settings.config_watch import ConfigWatch
from texelflow.app.settings.settings import Settings, changed, defaults, specs
from texelflow.gpu_delegate.base.errors import UsageError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HALF_A_SECOND_NS = 500_000_000

# Texts whose keys and their lines are known

KEYS = st.one_of(
    st.from_regex(r"[A-Za-z0-9_-]{1,4}", fullmatch=True).map(lambda key: (key, key)),
    st.sampled_from([('"a b"', "a b"), (r'"\"#="', '"#='), (r'"\u0041\t"', "A\t"), ("'\\['", "\\["), ('""', "")]),
)
VALUES = st.sampled_from(
    [
        "1", "-1.5e3", "true", '"# no comment"', "'# [no] = table'", r'"\"]["', "1979-05-27T07:32:00Z", "{}",
        '[1, # one\n "]", [2,\n 3]]', '{ a = 1, b = { c = "}" } }', "[\n]", "[[],\n[]]", "''''''", '""""a""""',
        '"""\nx = 1\n# "two" ""\n\\"""[a]"""', '"""a"""""', "'''\n[t]\nk=1'''",
    ]
)  # fmt: skip
BLANKS = st.sampled_from(["", "\n", "# [x]\n", "  \t\n# 'it\n", '\n\n# """\n'])
ENDS = st.sampled_from(["", " # a = 1", "\t", " #'''"])


@st.composite
def texts(draw: Any) -> tuple[str, dict[tuple[str, ...], int]]:
    """A TOML text, and the line of each of its headers and keys."""
    text = ""
    lines: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    for number in range(draw(st.integers(0, 6))):
        text += draw(BLANKS)
        keys = draw(st.lists(KEYS, min_size=1, max_size=3))
        names = (f"n{number}", *(name for _, name in keys))
        written = draw(st.sampled_from([".", " . ", "."])).join((f"n{number}", *(shown for shown, _ in keys)))
        indent, line = draw(st.sampled_from(["", " ", "\t"])), text.count("\n") + 1
        if draw(st.booleans()):
            marks = draw(st.sampled_from([("[", "]"), ("[ ", " ]"), ("[[", "]]")]))
            text += f"{indent}{marks[0]}{written}{marks[1]}{draw(ENDS)}\n"
            table = names
            lines[table] = line
        else:
            text += f"{indent}{written} {draw(st.sampled_from(['=', '= ']))} {draw(VALUES)}{draw(ENDS)}\n"
            lines[table + names] = line
    return text, lines


class TestLines:
    @given(texts())
    @hypothesis_settings(max_examples=200, deadline=None)
    def test_of_headers_and_keys(self, found: tuple[str, dict[tuple[str, ...], int]]) -> None:
        text, lines = found
        tomllib.loads(text)
        assert key_lines(text) == lines
        assert key_lines(text.replace("\n", "\r\n")) == lines

    @given(any_settings)
    @hypothesis_settings(deadline=None)
    def test_of_what_is_dumped(self, settings: Settings) -> None:
        text = dump(settings)
        written, lines = text.splitlines(), key_lines(text)
        for spec in specs():
            assert written[lines[spec.section, spec.name] - 1].startswith(f"{spec.name} = ")


def told(folder: Path, content: str | bytes) -> str:
    """What is said of a file with this content, less its name."""
    path = folder / "live.toml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UsageError) as caught:
        read_config(path)
    text = str(caught.value)
    assert text.isprintable()
    assert text.startswith(str(path))
    return text.removeprefix(str(path))


class TestReading:
    @given(any_settings)
    @hypothesis_settings(deadline=None)
    def test_what_is_dumped_reads_back(self, tmp_path_factory: pytest.TempPathFactory, settings: Settings) -> None:
        path = tmp_path_factory.getbasetemp() / "dumped.toml"
        path.write_text(dump(settings), encoding="utf-8")
        assert read_config(path) == settings
        assert path.stat().st_size < MOST_BYTES // 4

    def test_a_dump_explains_itself(self) -> None:
        lines = dump(Settings()).splitlines()
        place = lines.index("smooth = 0.5")
        assert lines[place - 1].startswith("# How much")
        assert "from 0 to 1; 0.5 by default" in lines[place - 1]
        assert "one of auto, gl, cpu" in lines[lines.index('backend = "auto"') - 1]

    @pytest.mark.parametrize(
        ("content", "complaint"),
        [
            ("\n[mask]\n\nsmoth = 3", ", line 4: [mask] smoth is no setting; did you mean smooth?"),
            ("[mask]\nsoftness = 1", ", line 2: [mask] softness is no setting; use feather, the width of a soft edge"),
            ("[mask]\nsmooth = 3", ", line 2: [mask] smooth = 3: a number from 0 to 1 is needed"),
            ("[mask]\n'smooth'=\"\"\"\n\n\"\"\"", r", line 2: [mask] smooth = '\n': a number from 0 to 1 is needed"),
            ("#\n[maks]\nsmooth = 1", ", line 2: maks is no section; did you mean mask?"),
            ("effect = 'blur'", ", line 1: effect is no section; it belongs in [picture]"),
            ("mirorr = true", ", line 1: mirorr is no section; did you mean mirror?"),
            ("softness = 0.5", ", line 1: softness is no section; use feather, "),
            ("[mask]\neffect = 'blur'", ", line 2: [mask] effect belongs in [picture]"),
            ("mask.smooth = 1\nmask.edges = 3", ", line 2: [mask] edges = 3: true or false is needed"),
            ("\nmask = { smooth = 1, edges = 3 }", ", line 2: [mask] edges = 3: true or false is needed"),
            ("[[mask]]\nsmooth = 1", ", line 1: mask has to be a section: [mask]"),
            ("[mask]\n[mask.smooth]\nx = 1", ", line 2: [mask] smooth = (a table): a number from 0 to 1 is needed"),
            ("[picture]\neffect = 'a'\neffect = 'b'", ", line 3: Cannot overwrite a value"),
            ("[picture\n", ", line 1: "),
            ("[picture]\nblur = [1,\n2", ", line 3: "),
            (b"# \xc3\xa4\n\n# \xff", ", line 3: not UTF-8; save it as UTF-8"),
            ("x = " + "[" * 9000, ": brackets within brackets without end"),
            ("#\n" + "a." * 30_000 + "b = 1", ", line 2: too many dots"),
            ("x = " + "1" * 9000, ": a number of too many digits"),
            ("[picture]\nblur = 0x" + "f" * 9000, ", line 2: [picture] blur = (that many): "),
            ("[picture]\n\"\\u0007\" = 1", r", line 2: [picture] '\x07' is no setting"),
            ("#" * (MOST_BYTES + 1), ": too large for a file of settings"),
        ],
    )  # fmt: skip
    def test_wrong_ones_say_where(self, tmp_path: Path, content: str | bytes, complaint: str) -> None:
        assert told(tmp_path, content).startswith(complaint)

    @given(st.one_of(st.text(), st.text(st.sampled_from("[]{}\"'=.,#\n\\ a1-mask\0é"), max_size=60)))
    @hypothesis_settings(max_examples=200, deadline=None)
    def test_anything_is_settings_or_one_line(self, tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
        path = tmp_path_factory.getbasetemp() / "anything.toml"
        path.write_text(text, encoding="utf-8")
        said = "nothing"
        try:
            read_config(path)
        except UsageError as error:
            said = str(error)
        assert said.isprintable()

    def test_a_mark_at_the_beginning_and_another_system_s_line_ends(self, tmp_path: Path) -> None:
        (tmp_path / "live.toml").write_bytes(b"\xef\xbb\xbf[mask]\r\nsmooth = 0.25\r\n[work]\r\n")
        assert read_config(tmp_path / "live.toml") == Settings(smooth=0.25)

    def test_what_is_no_file(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        for path, words in (
            (tmp_path, "Is a directory"),
            (tmp_path / "none.toml", "No such file"),
            (tmp_path / "pipe", "not a regular file"),
            (Path("/dev/zero"), "not a regular file"),
            (tmp_path / "a\0b", "no file has such a name"),
            (tmp_path / ("x" * 5000), "File name too long"),
        ):
            with pytest.raises(UsageError, match=words):
                read_config(path)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this user's file would be."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    path = default_path()
    assert tmp_path in path.parents
    path.parent.mkdir(parents=True)
    return path


class Clock:
    """Looks at a file half a second later, each time."""

    def __init__(self, watch: ConfigWatch) -> None:
        self.watch, self.now_ns = watch, 10**12

    def looks(self, settings: Settings, times: int = 3) -> list[Settings | str]:
        """What they find, from the first on."""
        found = []
        for _ in range(times):
            self.now_ns += HALF_A_SECOND_NS
            found.append(self.watch.poll(self.now_ns, settings))
        return [each for each in found if each is not None]


class TestWatching:
    def test_defaults_give_way_to_the_file_and_that_to_flags(self, home: Path) -> None:
        assert ConfigWatch().settings == Settings()
        home.write_text("[mask]\nsmooth = 0.25\ngamma = 2")
        assert ConfigWatch().settings == Settings(smooth=0.25, gamma=2.0)
        assert ConfigWatch(None, {"gamma": 3.0}).settings == Settings(smooth=0.25, gamma=3.0)
        with pytest.raises(UsageError, match=r"^--light-wrap 3: "):
            ConfigWatch(None, {"light_wrap": 3.0})
        with pytest.raises(UsageError, match="No such file"):
            ConfigWatch(home.parent / "other.toml")

    def test_replay_leaves_what_a_file_says_to_live_alone(self, tmp_path: Path) -> None:
        file = tmp_path / "live.toml"
        file.write_text("[mask]\nsmooth = 0.25\n[camera]\nsize = '320x240'\n[work]\nauto = true\nevery = 3")
        watch = ConfigWatch(file, {}, "replay")
        assert changed(defaults("replay"), watch.settings) == ("smooth",)
        file.write_text("[camera]\nsize = '320x200'\n[output]\nvirtual_camera = true\n[window]\noverlay = true")
        (found,) = Clock(watch).looks(watch.settings)
        assert isinstance(found, Settings)
        assert changed(watch.settings, found) == ("smooth", "overlay")
        file.write_text("[work]\nevery = 99")
        with pytest.raises(UsageError, match="every = 99"):
            ConfigWatch(file, {}, "replay")

    def test_a_file_that_changes(self, home: Path) -> None:
        home.write_text("[mask]\nsmooth = 0.25\ngamma = 2")
        watch = ConfigWatch(None, {"every": 2})
        clock, now = Clock(watch), watch.settings
        assert clock.looks(now) == []
        home.write_text("[mask]\nsmooth = 0.75\n[work]\nevery = 5")
        (found,) = clock.looks(now)
        assert isinstance(found, Settings)
        assert changed(now, found) == ("smooth", "gamma"), "what it leaves out is back at its default, flags stay"
        assert (found.smooth, found.gamma, found.every) == (0.75, 1.0, 2)

    def test_what_was_changed_while_running_stays_until_the_file_says_otherwise(self, home: Path) -> None:
        home.write_text("[mask]\nsmooth = 0.25")
        clock = Clock(ConfigWatch())
        now = Settings(smooth=0.5, effect="tint")  # by keys, or in the panel
        home.write_text("[mask]\nsmooth = 0.25\nedges = false")
        assert clock.looks(now) == [Settings(smooth=0.5, effect="tint", edges=False)]
        home.write_text("[mask]\nsmooth = 0.125\nedges = false")
        assert clock.looks(now) == [Settings(smooth=0.125, effect="tint")]

    def test_a_mistake_is_told_once_and_changes_nothing(self, home: Path) -> None:
        clock, now = Clock(ConfigWatch()), Settings()
        home.write_text("[mask]\nsmooth = 9")
        (line,) = clock.looks(now)
        assert isinstance(line, str)
        assert ", line 2: [mask] smooth = 9: " in line
        assert line.isprintable()
        home.write_text("[mask]\nsmooth = 0.125")
        assert clock.looks(now) == [Settings(smooth=0.125)]

    def test_one_that_is_replaced_and_one_that_is_gone_for_a_while(self, home: Path) -> None:
        home.write_text("[mask]\nsmooth = 0.25")
        clock, now = Clock(ConfigWatch()), Settings(smooth=0.25)
        other = home.with_suffix(".new")
        other.write_text("[mask]\nsmooth = 0.75")
        os.utime(other, ns=(home.stat().st_atime_ns, home.stat().st_mtime_ns))
        os.replace(other, home)
        assert clock.looks(now) == [Settings(smooth=0.75)]
        home.unlink()
        assert clock.looks(now) == []
        home.write_text("[mask]\nsmooth = 0.125")
        assert clock.looks(now) == [Settings(smooth=0.125)]

    def test_one_that_is_being_written_is_left_alone(self, home: Path) -> None:
        clock, now = Clock(ConfigWatch()), Settings()
        for length in range(1, 9):
            home.write_text("[mask]\nsmooth = 0.75"[:length])
            assert clock.looks(now, 1) == []
        home.write_text("[mask]\nsmooth = 0.75")
        assert clock.looks(now) == [Settings(smooth=0.75)]

    def test_it_looks_twice_a_second_at_most(self, home: Path) -> None:
        watch, now = ConfigWatch(), Settings()
        watch.poll(0, now)
        home.write_text("[mask]\nsmooth = 0.75")
        assert [watch.poll(HALF_A_SECOND_NS - 1, now) for _ in range(5)] == [None] * 5
        assert watch.poll(HALF_A_SECOND_NS, now) is None, "seen, and not yet left alone by whoever writes it"
        assert watch.poll(2 * HALF_A_SECOND_NS - 1, now) is None
        assert watch.poll(2 * HALF_A_SECOND_NS, now) == Settings(smooth=0.75)
