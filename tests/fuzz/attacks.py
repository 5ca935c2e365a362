"""The table of attacks: the valid files that mutants are made of, and what reads each mutant."""

import contextlib
import io
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from pathlib import Path
from random import Random

import cv2
import numpy as np

from tests.app.archive.manifest.test_manifest import MANIFEST
from tests.app.models.test_metadata import metadata_flatbuffer, model
from tests.fuzz.byte_mutations import mutated
from tests.fuzz.false_refusals import judge_refusal
from tests.fuzz.found_things import find_hostile_things, finding_models
from tests.fuzz.models import is_taken, mutated_model, noise, opaque_models, run_model, small_models
from tests.gpu_delegate.reading.test_bundles import ALIGNED, DETECTOR, GESTURE, HAND, WORDS, zipped
from tests.helpers.clips import Recipe, moving, write_clip
from tests.helpers.mjpeg_server import HEAD, MjpegServer, jpeg, numbered_picture, part
from texelflow.app.archive.manifest.manifest import MANIFEST_NAME
from texelflow.app.archive.manifest.manifest_index import ManifestIndex
from texelflow.app.archive.manifest.verify import verify_archive
from texelflow.app.capture.network_source import open_network
from texelflow.app.capture.source import CaptureRequest, SourceLostError
from texelflow.app.cli import main
from texelflow.app.console import Console
from texelflow.app.frame.looks.background import read_image
from texelflow.app.media.frames import read_frames
from texelflow.app.media.pipe import open_pipe
from texelflow.app.media.recorder import Recorder
from texelflow.app.media.sources import FileSource
from texelflow.app.models.metadata import read_metadata
from texelflow.app.settings.config import dump, read_config
from texelflow.app.settings.settings import Settings
from texelflow.gpu_delegate.base.disk_cache import as_entry, parse_entry
from texelflow.gpu_delegate.base.errors import ModelError, UsageError
from texelflow.gpu_delegate.device.device import HARDWARE
from texelflow.gpu_delegate.plan.admission import rewrite_graph
from texelflow.gpu_delegate.plan.placement import MAX_ARENA_BYTES
from texelflow.gpu_delegate.reading.bundles import model_file_bytes
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.saving.saved_graph import restore_graph, save_graph
from texelflow.gpu_delegate.targets.gl.context import open_context
from texelflow.gpu_delegate.targets.gl.runtime import Program, device_of
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph

_FRAMES, _READ = 12, 8  # of a clip, and of them read
_MOST_SHOTS = 6
_KEPT = 2  # models whose compiled graphs are kept
CLIP = Path(__file__).parents[2] / "assets" / "people.mp4"
_OK = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: "


Attempt = Callable[[bytes], str | None]
"""Takes hostile bytes; returns what happened if it is not just that they ran. Raises TexelflowError to refuse them."""

Mutate = Callable[[Sequence[bytes], Sequence[bytes], Random], bytes]


@dataclass(frozen=True)
class Attack:
    """What is mutated, how, and who gets it; of_models: models that the user names are mutated, too.

    `mutate` gets the seeds that `is_base` takes, all seeds, and chance.
    """

    seeds: Callable[[], Sequence[bytes]]
    attempt: Attempt
    mutate: Mutate = mutated
    is_base: Callable[[bytes], bool] = bool
    of_models: bool = False


def _with_file(name: str, attempt: Callable[[Path], object]) -> Attempt:
    """The attempt on a file of this name, which holds the bytes."""

    def run(data: bytes) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            path.write_bytes(data)
            attempt(path)

    return run


def _rewrite(data: bytes) -> None:
    """Through the reader and all passes."""
    rewrite_graph(read_model(data), fuse=True)


def _compile(data: bytes) -> None:
    compile_graph(read_model(data), HARDWARE)


def _is_compiled_soon(data: bytes) -> bool:
    """Whether the reader takes a model of few megabytes: drivers may take a minute for a larger one."""
    return len(data) < 1 << 20 and is_taken(data)


def _run_on_gpu(data: bytes) -> None:
    """Two runs on noise; whatever is computed, OpenGL complains of nothing."""
    graph = read_model(data)
    os.environ.setdefault("GALLIVM_PERF", "nopt")  # of kernels that run twice, most of the time is compilation
    with open_context() as context, Program(context, compile_graph(graph, device_of(context))) as program:
        for seed in range(2):
            for tensor, values in zip(graph.inputs, noise(graph, seed), strict=True):
                program.write(tensor, values)
            program.run()
            for tensor in graph.outputs:
                program.read(tensor)
        context.check_errors("the run")


def _described_models() -> Sequence[bytes]:
    metadata = metadata_flatbuffer([127.5], [127.5], 1)
    return [model(metadata, b"background\nperson\n"), model(metadata_flatbuffer([0.0], [255.0], 2))]


def _read_metadata(data: bytes) -> None:
    read_metadata(data)


def _bundles() -> Sequence[bytes]:
    return [HAND, ALIGNED, GESTURE, WORDS]


def _mutated_bundle(bases: Sequence[bytes], seeds: Sequence[bytes], chance: Random) -> bytes:
    """A damaged bundle, which its checksums mostly tell, or a sound one of a damaged model."""
    if chance.random() < 0.5:
        return mutated(bases, seeds, chance)
    return zipped({"model.tflite": mutated([DETECTOR], [DETECTOR], chance)})


def _read_bundle(path: Path) -> None:
    read_model(model_file_bytes(path))


def _recordings() -> Sequence[bytes]:
    recipes = {
        "a.mp4": Recipe(),
        "fragmented.mp4": Recipe(container_options={"movflags": "frag_keyframe+empty_moov"}),
        "sound.mp4": Recipe(sound="aac"),
        "a.mkv": Recipe(sound="flac"),
        "a.webm": Recipe(codec="libvpx", codec_options={}),
        "a.avi": Recipe(codec="mjpeg", pixel_format="yuvj420p", codec_options={}),
        "a.ts": Recipe(codec="mpeg2video", codec_options={}),
    }
    with tempfile.TemporaryDirectory() as folder:
        return [
            write_clip(Path(folder) / name, moving(_FRAMES), recipe).read_bytes() for name, recipe in recipes.items()
        ]


def _replay(path: Path) -> None:
    """Decode the recording and record it again, with its sound."""
    with FileSource(path) as source:
        info = source.info
        sound = path if info.has_audio else None
        target = path.with_name("again.mkv")
        rate = min(max(info.average_rate, Fraction(1)), Fraction(1000))
        with Recorder(target, info.width, info.height, info.time_base, rate, audio_from=sound) as recorder:
            for frame in islice(source, _READ):
                recorder.write(frame.rgba, frame.pts)


def _images() -> Sequence[bytes]:
    picture = np.concatenate([moving(1)[0], np.full((48, 64, 1), 200, np.uint8)], -1)
    opaque = picture[..., :3]
    kinds = ((".png", picture), (".png", picture[..., 0]), (".jpg", opaque), (".webp", picture), (".webp", opaque))
    encoded = [cv2.imencode(suffix, pixels) for suffix, pixels in kinds]
    assert all(done for done, _ in encoded)
    return [bytes(data) for _, data in encoded]


def _piped() -> Sequence[bytes]:
    """What comes through pipes: recordings, and pictures one behind the other."""
    pictures = _images()
    return [*_recordings(), pictures[0] * 3, pictures[2] * 3]


def _read_pipe(path: Path) -> None:
    with path.open("rb") as file, open_pipe(file.fileno()) as source:
        for frame in islice(source, _READ):
            frame.rgba.sum()


def _streams() -> Sequence[bytes]:
    pictures = [jpeg(numbered_picture(index, (64, 48))) for index in range(_MOST_SHOTS)]
    with tempfile.TemporaryDirectory() as folder:
        transport = write_clip(Path(folder) / "a.ts", moving(_FRAMES)).read_bytes()
    chunks = b"".join(f"{len(picture):x}\r\n".encode() + picture + b"\r\n" for picture in pictures) + b"0\r\n\r\n"
    return [
        HEAD + b"".join(map(part, pictures)),
        _OK + b"video/x-motion-jpeg\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks,
        _OK + b"video/mp2t\r\n\r\n" + transport,
        b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n",
    ]


def _watch(data: bytes) -> None:
    """Open what a server on loopback sends, and read a few pictures of it."""
    with MjpegServer(answer=lambda connection, _: connection.sendall(data)) as server:
        source = open_network(server.url, CaptureRequest())
        try:
            with contextlib.suppress(SourceLostError):  # at the end, where it has sent a picture
                for _ in range(_MOST_SHOTS):
                    source.read()
        finally:
            source.close()


def _commands() -> Sequence[bytes]:
    """Command lines that write no file, their words divided by zeros."""
    lines = (
        "replay people.mp4 --from 1s --to 1.1s --backend cpu --fit crop --range -1..1 --json",
        "replay people.mp4 --to 1 --effect replace --background people.mp4 --threshold 0.5 --speed 2 --overlay",
        "check people.mp4 --from 3 --to 3 --tolerance 0.01 --activation none --channel 0 --precision fp16",
        "inspect people.mp4 --no-peaks --unfused --json",
        "bench frame --size 64x48 --backend cpu --runs 1 --warmup 0 --json",
        "bench quality people.mp4 --to 2 --seed 0 --backend cpu",
        "live --dump-config --blur 9 --size 640x480 --camera 0 --effect tint --feather 1.5 --grow -2",
    )
    return [line.replace(" ", "\0").encode() for line in lines]


def _command(data: bytes) -> None:
    """Run it beside the demo clip; only the exit codes that the help promises are sound."""
    words = [os.fsdecode(word) for word in data.split(b"\0")]
    if {"fetch", "--help", "-h"} & {*words}:
        return
    with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w") as nothing:
        (Path(folder) / "people.mp4").symlink_to(CLIP)
        os.chdir(folder)
        errors = io.StringIO()
        with contextlib.redirect_stdout(nothing), contextlib.redirect_stderr(errors):
            code = main(words)
        os.chdir("/")
    said = errors.getvalue()
    if code not in (0, 1, 2, 3):
        raise AssertionError(f"exit code {code}: {said}")
    if code == 2:
        raise UsageError(" ".join(said.splitlines()[-1:]))


def _arrays() -> Sequence[bytes]:
    stream = io.BytesIO()
    np.save(stream, np.zeros((2, 8, 8, 4), np.uint8))
    return [stream.getvalue()]


def _touch_frames(path: Path) -> int:
    frames = read_frames(path)
    return int(frames[0].sum()) + int(frames[-1].sum())


def _read_manifest(path: Path) -> None:
    """Its index, what it says of files, and the proof of the folder that it lies in."""
    with ManifestIndex(path) as index:
        for recorded in index.last_results():
            for name, file in index.own_files(recorded.result.input.address):
                assert name
                assert not Path(file).is_absolute()
                assert ".." not in Path(file).parts
    with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing), contextlib.redirect_stderr(nothing):
        code = verify_archive(path.parent, Console(), as_json=False)
    assert code in (0, 1), code


def _kept_graphs() -> Sequence[bytes]:
    """Of small models, as they lie in the cache."""
    return [save_graph(compile_graph(read_model(data), HARDWARE)) for data in small_models()[:_KEPT]]


def _restore(data: bytes) -> None:
    """Bytes whose checksum is right: a graph that its buffers hold, or nothing."""
    assert parse_entry(as_entry("graphs", "key", data)) == ("graphs", "key", data)
    assert parse_entry(data) is None, "it has no header"
    found = [graph for each in small_models()[:_KEPT] if (graph := restore_graph(data, read_model(each)))]
    if not found:
        raise ModelError("nothing that was kept")
    for graph in found:
        assert graph.plan.total_bytes <= MAX_ARENA_BYTES


ATTACKS = {
    "models": Attack(opaque_models, run_model, mutated_model, is_taken, of_models=True),
    "refusals": Attack(opaque_models, judge_refusal, mutated_model, is_taken, of_models=True),
    "passes": Attack(opaque_models, _rewrite, mutated_model, is_taken, of_models=True),
    "compile": Attack(small_models, _compile, mutated_model, is_taken, of_models=True),
    "gpu": Attack(small_models, _run_on_gpu, mutated_model, _is_compiled_soon, of_models=True),
    "caches": Attack(_kept_graphs, _restore),
    "manifests": Attack(lambda: [MANIFEST], _with_file(MANIFEST_NAME, _read_manifest)),
    "metadata": Attack(_described_models, _read_metadata),
    "findings": Attack(finding_models, find_hostile_things, mutated_model, is_taken),
    "bundles": Attack(_bundles, _with_file("in.task", _read_bundle), _mutated_bundle),
    "recordings": Attack(_recordings, _with_file("in.bin", _replay)),
    "images": Attack(_images, _with_file("in.png", read_image)),
    "pipes": Attack(_piped, _with_file("in.bin", _read_pipe)),
    "streams": Attack(_streams, _watch),
    "settings": Attack(lambda: [dump(Settings()).encode()], _with_file("live.toml", read_config)),
    "commands": Attack(_commands, _command),
    "frames": Attack(_arrays, _with_file("in.npy", _touch_frames)),
}
