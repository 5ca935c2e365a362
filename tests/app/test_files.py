"""The command line on files that are read and written: nothing that is there is lost."""

import errno
import hashlib
import os
import pty
import select
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import cv2
import numpy as np
import pytest

from tests.helpers.clips import moving, write_clip
from tests.helpers.commands import Command
from tests.helpers.markers import exhaustive, one_in
from tests.helpers.portable import needs_terminal
from tests.helpers.running import times_of
from tests.helpers.waiting import PATIENCE_S
from texelflow.app.console import Console, Report
from texelflow.app.files import ENDINGS, Read, own_name
from texelflow.app.media.video_encoder import CONTAINERS
from texelflow.app.replay.replay import replay
from texelflow.app.replay.replay_options import ReplayOptions
from texelflow.gpu_delegate.base.errors import UsageError


@pytest.fixture
def texelflow(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, selfie_model: Path) -> Path:
    """A folder with all that a user may have."""
    folder = tmp_path_factory.mktemp("made")
    write_clip(folder / "in.mp4", moving(3))
    write_clip(folder / "bg.mp4", moving(4))
    shutil.copy(selfie_model, folder / "model.tflite")
    np.save(folder / "frames.npy", np.zeros((1, 48, 64, 4), np.uint8))
    (folder / "live.toml").write_text('[output]\nrecord = "config.mp4"\n')
    for name in ("old.mp4", "old.json", "old.csv", "old.png", "old.npy", "given/demo.png", "pics/notes.txt"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("precious")
    for name in ("pics/000000.png", "pics/000099.png"):
        cv2.imwrite(str(folder / name), np.full((48, 64, 3), 200, np.uint8))
    return folder


@pytest.fixture
def place(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, with links and what is no regular file, as the current folder."""
    folder = tmp_path / "place"
    shutil.copytree(made, folder)
    for link, target in (
        ("soft.mp4", "bg.mp4"), ("soft.png", "model.tflite"), ("soft.npy", "frames.npy"), ("config.mp4", "live.toml"),
        ("same", "pics"), ("null.csv", "/dev/null"), ("nowhere.mp4", "gone.mp4"), ("round.mp4", "round.mp4"),
        ("nowhere.jpg", "gone.jpg"),
    ):  # fmt: skip
        (folder / link).symlink_to(target)
    for link, target in (("hard.mp4", "bg.mp4"), ("hard.png", "in.mp4"), ("hard.json", "model.tflite")):
        os.link(folder / target, folder / link)
    os.mkfifo(folder / "pipe.json")
    os.mkfifo(folder / "pipe.mp4")
    (folder / "texelflow-debug").mkdir()
    shutil.copy(folder / "frames.npy", folder / "texelflow-debug" / "run0-input.npy")
    monkeypatch.chdir(folder)
    return folder


def contents(folder: Path) -> dict[str, str]:
    """The hash of each file in a folder and in those in it."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "no file"
        for path in folder.rglob("*")
    }


CHECK = "check in.mp4 --to 0"
REPLAY = "replay in.mp4 --backend cpu"
BACKGROUND = f"{REPLAY} --effect replace --background"
LIVE = "live --backend cpu"
KEPT = "texelflow: --log old.json: exists already; choose another name, or --force to write over it"


@one_in(
    3,
    ("command", "complaint"),
    [
        # What is read
        (f"{CHECK} --report in.mp4", "its name must end in .png"),
        (f"{CHECK} --report model.tflite", "its name must end in .png"),
        (f"{CHECK} --report hard.png", "--report hard.png: that is the input itself; choose another name"),
        (f"{CHECK} --model model.tflite --report soft.png", "that is the model"),
        (f"{BACKGROUND} bg.mp4 --out bg.mp4", "--out bg.mp4: that is the background; choose another name"),
        (f"{BACKGROUND} bg.mp4 --out soft.mp4", "that is the background"),
        (f"{BACKGROUND} bg.mp4 --out hard.mp4", "that is the background"),
        (f"{BACKGROUND} hard.mp4 --out given/../soft.mp4", "that is the background"),
        (f"{BACKGROUND} pics/000000.png --masks pics", "'pics/000000.png' would be written over, which is the backg"),
        (f"{BACKGROUND} pics/000000.png --out same", "'pics/000000.png' would be written over"),
        (f"{REPLAY} --out ./in.mp4", "that is the input itself"),
        (f"{REPLAY} --masks in.mp4", "that is the input itself"),
        (f"{REPLAY} --model model.tflite --trace hard.json", "that is the model"),
        ("bench frame --frames frames.npy --masks frames.npy", "that is --frames"),
        ("bench frame --frames frames.npy --masks soft.npy", "that is --frames"),
        (f"{LIVE} --camera in.mp4 --out in.mp4", "--out in.mp4: that is the camera"),
        (f"{LIVE} --camera pattern --background bg.mp4 --masks hard.mp4", "that is the background"),
        (f"{LIVE} --config live.toml", "--out config.mp4: that is the file of settings"),
        (f"{LIVE} --model model.tflite --camera pattern --record m.mp4 --mattes ./m.mp4", "where --out writes"),
        # Each other
        (f"{REPLAY} --log new.json --trace new.json", "--trace new.json: that is where --log writes"),
        (f"{REPLAY} --log pics/x.json --trace same/x.json", "that is where --log writes"),
        (f"{REPLAY} --masks new --out same/../new", "that is where --out writes"),
        # Endings
        (f"{REPLAY} --out old.gif", "its name must end in .mp4, .m4v, .mov, .mkv"),
        (f"{REPLAY} --log new.txt", "its name must end in .json or .csv"),
        (f"{REPLAY} --trace new.csv", "its name must end in .json"),
        (f"{REPLAY} --cutouts new.mp4", "a folder is needed, such as new"),
        ("bench frame --masks new.png", "its name must end in .npy"),
        (f"{LIVE} --out new.png", "its name must end in .mp4"),
        (f"{LIVE} --cutouts new.mp4", "a folder is needed, such as new"),
        ("replay pics/000000.png --out new.bmp", "its name must end in .png, .mp4, .m4v, .mov, .mkv, .webm; a folder"),
        ("replay pics/000000.png --masks new.jpg", "--masks new.jpg: its name must end in .png, .mp4"),
        ("replay pics/000000.png --cutouts new.jpg", "--cutouts new.jpg: its name must end in .png"),
        (f"{REPLAY} --out .mp4", "--out .mp4: that is an ending alone; put a name before it, such as result.mp4"),
        ("replay pics/000000.png --out given/.png", "--out given/.png: that is an ending alone"),
        (f"{REPLAY} --log .json", "--log .json: that is an ending alone"),
        (f"{LIVE} --camera pattern --no-window --out .mkv", "--out .mkv: that is an ending alone"),
        # Addresses
        (f"{REPLAY} --out rtmp://host/x", "--out rtmp://host/x: nothing is written to rtmp:// addresses; name a file"),
        (f"{REPLAY} --out s3://host/x.mp4", "nothing is written to s3:// addresses"),
        (f"{REPLAY} --cutouts file:///tmp/x", "--cutouts file:///tmp/x: nothing is written to file:// addresses"),
        (f"{REPLAY} --log https://host/x.json", "nothing is written to https:// addresses"),
        (
            f"{LIVE} --camera pattern --out rtmp://host/x",
            "--out rtmp://host/x: nothing is written to rtmp:// addresses",
        ),
        (f"{LIVE} --camera pattern --no-window --masks srt://host:99", "nothing is written to srt:// addresses"),
        ("replay in.mp4 pics/000000.png --out ftp://host/x", "nothing is written to ftp:// addresses"),
        (
            f"{REPLAY} --out rtmp:host/x",
            "--out rtmp:host/x: nothing is written to rtmp: addresses; name a file or a fo",
        ),
        (f"{REPLAY} --out pipe:1", "of this machine, ./NAME for one of that name"),
        (f"{REPLAY} --masks data:image/png,abc", "--masks data:image/png,abc: nothing is written to data: addresses"),
        (f"{REPLAY} --cutouts s3:bucket", "nothing is written to s3: addresses"),
        (f"{REPLAY} --out rtmp:\\\\host\\x", "nothing is written to rtmp: addresses"),
        (f"{REPLAY} --trace 1tmp://host/x", "--trace 1tmp://host/x: nothing is written to 1tmp:// addresses"),
        (f"{LIVE} --camera pattern --no-window --out SRT:host", "--out SRT:host: nothing is written to SRT: addresses"),
        (f"{LIVE} --camera pattern --no-window --out r_t://host", "nothing is written to r_t:// addresses"),
        (f"{CHECK} --report rtp:x", "--report rtp:x: nothing is written to rtp: addresses"),
        ("bench gpu --report s3://b/x", "--report s3://b/x: nothing is written to s3:// addresses"),
        ("bench quality --scenes --sheet s3://b/x", "--sheet s3://b/x: nothing is written to s3:// addresses"),
        ("inspect selfie --shaders concat:a", "--shaders concat:a: nothing is written to concat: addresses"),
        ("demo --out udp:host", "--out udp:host: nothing is written to udp: addresses"),
        ("archive in.mp4 --out s3://b/x", "--out s3://b/x: nothing is written to s3:// addresses"),
        ("archive --verify s3://b/x", "--verify s3://b/x: that is an address; name a folder of this machine"),
        (f"{REPLAY} --config http://host/y.toml", "cannot read http://host/y.toml: No such file"),
        ("replay https://host/a.mp4 --out new.mp4", "'https://host/a.mp4' is an address; fetch the file"),
        # What is no regular file
        ("replay nowhere.mp4 --out new.mp4", "'nowhere.mp4' is a link that leads nowhere"),
        ("replay round.mp4 --out new.mp4", "'round.mp4' is a link that leads nowhere"),
        ("replay nowhere.jpg --out new.png", "cannot read image 'nowhere.jpg': it is a link that leads nowhere"),
        ("replay gone.jpg --out new.png", "cannot read image 'gone.jpg': No such file"),
        ("check pics/000000.png", "'pics/000000.png' is a picture, and a video is needed; replay takes pictures"),
        (f"{LIVE} --camera pics/000000.png --no-window --out n.mp4", "is a picture, and a video is needed"),
        (f"{REPLAY} --log pipe.json", "not a regular file"),
        (f"{REPLAY} --log null.csv", "not a regular file"),
        (f"{REPLAY} --trace pipe.json", "not a regular file"),
        (f"{REPLAY} --out pipe.mp4", "not a regular file"),
        ("check pipe.mp4", "not a regular file"),
        ("replay pipe.mp4 --out pipe.mp4", "not a regular file"),
        (f"{REPLAY} --log old.mp4/x.json", "there is no folder"),
        (f"{REPLAY} --masks old.mp4/x", "something above it is a file"),
    ],
)
def test_what_is_refused_even_with_force(command: str, complaint: str, place: Path, texelflow: Command) -> None:
    before = contents(place)
    force = [] if command.startswith(("live", "check pipe")) else ["--force"]
    for more in ([], force):
        assert complaint in texelflow(*command.split(), *more).complaint
        assert contents(place) == before


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("replay", ""), "INPUT '': an empty name"),
        (("replay", "in.mp4", "--out", ""), "--out '': an empty name; give one, or leave the option out"),
        (("replay", "in.mp4", "--log", ""), "an output has an empty name"),
        (("replay", "in.mp4", "--config", ""), "cannot read ."),
        (("live", "--camera", "pattern", "--record", ""), "--record '': an empty name"),
        (("demo", "--out", ""), "an output has an empty name"),
    ],
)
def test_empty_names(arguments: tuple[str, ...], complaint: str, place: Path, texelflow: Command) -> None:
    before = contents(place)
    assert complaint in texelflow(*arguments).complaint
    assert contents(place) == before


def test_what_may_not_be_read_is_told_so(place: Path, texelflow: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(path: str | Path, *_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    with monkeypatch.context() as patched:
        patched.setattr("texelflow.app.media.image_file._read", denied)
        complaint = texelflow("replay", "pics/000000.png", "--out", "new.png").complaint
    assert "cannot read image 'pics/000000.png': Permission denied" in complaint
    stat = os.stat
    monkeypatch.setattr(os, "stat", lambda path, **more: denied(path) if path == "in.mp4" else stat(path, **more))
    complaint = texelflow("replay", "in.mp4", "--out", "new.mp4").complaint
    assert "'in.mp4' cannot be read (Permission denied); check the permissions of the folders above it" in complaint


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        (f"{REPLAY} --out old.mp4", "--out old.mp4: exists already; choose another name, or --force to write over it"),
        (f"{REPLAY} --log old.csv --trace new.json", "--log old.csv: exists already"),
        (f"{REPLAY} --log new.csv --trace old.json", "--trace old.json: exists already"),
        (f"{REPLAY} --out pics", "--out pics: holds 000000.png of another run; choose another folder, or --force"),
        (f"{REPLAY} --masks same", "--masks same: holds 000000.png of another run"),
        (f"{CHECK} --report old.png", "--report old.png: exists already"),
        ("bench frame --masks old.npy", "--masks old.npy: exists already"),
        ("demo --out given", "--out given: holds demo.png already"),
    ],
)
def test_what_is_there_is_kept(command: str, complaint: str, place: Path, texelflow: Command) -> None:
    before = contents(place)
    assert complaint in texelflow(*command.split()).complaint
    assert contents(place) == before


def test_debug_does_not_write_over_what_is_read(
    place: Path, texelflow: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEBUG", "5")
    before = contents(place)
    complaint = texelflow("bench", "frame", "--frames", "texelflow-debug/run0-input.npy").complaint
    assert "DEBUG texelflow-debug: 'texelflow-debug/run0-input.npy' would be written over, which is --fr" in complaint
    assert contents(place) == before


@pytest.mark.gl
def test_force_writes_over_what_is_there_and_over_nothing_else(place: Path, texelflow: Command) -> None:
    before = contents(place)
    outputs = "--out old.mp4 --masks pics --log old.csv --trace old.json --force"
    result = texelflow(*REPLAY.split(), *outputs.split())
    assert result.code == 0, result.err
    after = contents(place)
    changed = {name for name in after if after[name] != before.get(name)}
    pictures = {f"{folder}/00000{number}.png" for folder in ("pics", "same") for number in range(3)}
    assert changed - pictures == {"old.mp4", "old.csv", "old.json"}
    assert changed & pictures >= {f"pics/00000{number}.png" for number in range(3)}
    assert before.keys() <= after.keys()
    assert len(times_of(place / "old.mp4")) == 3


def test_what_comes_while_the_run_begins_is_kept(place: Path) -> None:
    class Busy(Console):
        """Somebody else writes the output meanwhile."""

        @contextmanager
        def download(self, what: str = "the model") -> Iterator[Report]:
            Path("new.json").write_text("precious")
            with super().download() as report:
                yield report

    with pytest.raises(UsageError, match=r"--log new\.json: exists already"):
        replay(ReplayOptions(Path("in.mp4"), {"backend": "cpu"}, log=Path("new.json")), Busy(quiet=True))
    assert Path("new.json").read_text() == "precious"


@exhaustive
@pytest.mark.gl
def test_folders_with_other_files_are_taken(place: Path, texelflow: Command) -> None:
    before = contents(place)
    assert texelflow(*REPLAY.split(), "--masks", "given").code == 0
    after = contents(place)
    assert {name: after[name] for name in before} == before
    assert {*after} - {*before} == {f"given/00000{number}.png" for number in range(3)}


@exhaustive
@pytest.mark.gl
def test_a_name_of_the_programs_own_is_not_what_is_read(place: Path, texelflow: Command) -> None:
    (place / "texelflow-check.png").symlink_to("in.mp4")
    before = contents(place)
    result = texelflow("check", "in.mp4", "--to", 0, "--tolerance", 0)
    assert result.code == 1, result.err
    assert "is in texelflow-check-1.png" in result.out
    after = contents(place)
    assert after.pop("texelflow-check-1.png")
    assert after == before
    assert own_name(Path("old.png"), [Read("the input itself", Path("in.mp4"))]) == Path("old.png"), "it is renewed"
    assert own_name(Path("new.png"), [Read("the input itself", Path("new.png.part"))]) == Path("new.png")


def test_every_ending_of_videos_is_one_that_can_be_recorded() -> None:
    assert set(CONTAINERS) == set(ENDINGS["video"])


@pytest.mark.gl
@one_in(3, "name", ["./rtmp:x.png", "talk:1.png", "Meeting 10:30.png", "C:\\x.png"])
def test_files_may_have_colons_in_their_names(name: str, place: Path, texelflow: Command) -> None:
    log = name.replace(".png", ".json")
    result = texelflow("replay", "pics/000000.png", "--backend", "cpu", "--out", name, "--log", log)
    assert result.code == 0, result.err
    assert (place / name).is_file()
    assert (place / log).is_file()
    assert "exists already" in texelflow("replay", "pics/000000.png", "--out", name).complaint


# On a terminal


def on_terminal(answer: bytes, question: str, *arguments: str) -> tuple[int, str]:
    """Run the program on a terminal of its own and answer its question: the exit code, and all that it shows."""
    process, terminal = pty.fork()
    if not process:
        os.execv(sys.executable, [sys.executable, "-m", "texelflow.app", *arguments])
    shown, answered = b"", False
    try:
        while select.select([terminal], [], [], PATIENCE_S)[0]:
            try:
                shown += os.read(terminal, 4096)
            except OSError:  # Linux's way of telling the end
                break
            if not answered and question.encode() in shown:
                os.write(terminal, answer)
                answered = True
    finally:
        os.close(terminal)
        _, status = os.waitpid(process, 0)
    assert answered, shown
    return os.waitstatus_to_exitcode(status), shown.decode()


@needs_terminal
@one_in(
    4,
    ("answer", "code", "last", "kept"),
    [
        (b"y\n", 0, "", False),
        (
            b"n\n",
            2,
            KEPT,
            True,
        ),
        (b"\4", 2, KEPT, True),
        (b"\3", 130, "texelflow: interrupted", True),
    ],
    ids=["yes", "no", "Ctrl-D", "Ctrl-C"],
)
def test_a_person_is_asked(
    answer: bytes, code: int, last: str, kept: bool, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    question = "old.json exists: overwrite it? [y/N] "
    found, shown = on_terminal(answer, question, *REPLAY.split(), "--to", "0", "--log", "old.json")
    assert found == code, shown
    assert last in shown.splitlines()[-1]
    assert ((place / "old.json").read_text() == "precious") == kept
    assert shown.count("[y/N]") == 1
