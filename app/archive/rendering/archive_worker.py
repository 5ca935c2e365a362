"""Does jobs on this machine, one after the other, and tells what came of each.

Raises nothing for what inputs, this machine or the disk do: such jobs have failed, for a reason of one line.
"""

import contextlib
import os
import platform
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from time import perf_counter

from ...atomic import publish
from ...media.join import PieceError, join_folders, join_video
from ...media.media_inputs import InputKind, input_kind
from ...media.piece_source import FrameIndex, UnfitPieceError, index_frames
from ...replay.made_by import made_of
from ...replay.replay_engine import ReplayEngine
from ..inputs.fetching import InputCache
from ..inputs.input_files import HeldInput
from ..jobs.failures import InputError, MachineError, StoppedError, failure_of, failure_reason
from ..jobs.jobs import (
    Agreement,
    ArchiveInput,
    Cut,
    FrameRange,
    InputDone,
    Job,
    JobFailed,
    JobOutcome,
    JoinPieces,
    PieceDone,
    RenderPiece,
)
from ..jobs.versions import own_versions, versions_differ
from ..jobs.worker_config import WorkerConfig
from ..staging.work_folder import piece_name, work_folder
from .piece_cutting import cut_frames, why_frames_stay_whole, why_kind_stays_whole
from .placing import PlaceRules, place_results
from .rendering import PICTURE, Rendered, Rendering, SilentConsole


@dataclass(frozen=True)
class WorkerFacts:
    """What a worker tells of itself; backend and renderer are known once a recording has been rendered."""

    name: str  # host and process
    host: str
    process: int
    backend: str = ""
    renderer: str = ""


class ArchiveWorker:
    """Does the jobs of one run, one at a time. Model, device and code are opened by the first job, and kept.

    Everything but `stop` is called on one thread, always the same.
    """

    def __init__(self, config: WorkerConfig) -> None:
        """Opens nothing, and never raises."""
        self._config = config
        self._engine = ReplayEngine(SilentConsole(quiet=True))
        self._inputs = InputCache(config.cache, config.cache_bytes, self._engine.stopping)
        self._rendering = Rendering(
            config.settings, config.format, config.with_masks, config.sampled_every, config.most_frame_bytes
        )
        self._index: tuple[str, FrameIndex] | None = None  # of the recording that was cut last, by its sha256
        host, process = platform.node(), os.getpid()
        self._facts = WorkerFacts(f"{host}:{process}", host, process)

    @property
    def facts(self) -> WorkerFacts:
        """As of now."""
        return self._facts

    def run(self, job: Job) -> JobOutcome:
        """Do it. What an earlier attempt at the same job has left does no harm, and is done once more."""
        start, config = perf_counter(), self._config
        called = dict[str, str]()  # of paths that another attempt does not have, what its user knows instead
        try:
            self._check_stopped()
            self._check_machine()
            _check_name(job.input)
            with work_folder(config.staging, job) as folder, self._inputs.open(job.input) as held:
                called = {str(held.path): job.input.address, f"{folder}{os.sep}": ""}
                return self._done(job, held, folder, start)
        except Exception as error:  # also of what nobody has foreseen, which is a failure like others
            if not self._engine.stopping.is_set():
                failed = failure_of(error, config.out, perf_counter() - start, reads=job.input.address)
                for path, known in called.items():
                    failed = replace(failed, reason=failed.reason.replace(path, known))
                return failed
        self.close()
        return JobFailed("machine", "the worker was stopped", perf_counter() - start)

    def stop(self) -> None:
        """From any thread: the job at hand ends at its next frame, without results; no other one is done."""
        self._engine.stopping.set()

    def close(self) -> None:
        """Free what is on the device."""
        self._engine.close()

    def _done(self, job: Job, held: HeldInput, folder: Path, start: float) -> JobOutcome:
        """Raises whatever goes wrong."""
        if isinstance(job, RenderPiece):
            held.expect(job.sha256, wholly=False)
            return self._piece(job, held, folder, start)
        if isinstance(job, JoinPieces):
            held.expect(job.sha256, wholly=True)
            if job.render_whole:
                done = self._whole(held, input_kind(str(held.path)), folder, start)
                done = replace(done, notes=(f"rendered in one go: {job.why_whole}", *done.notes))
            else:
                done = self._joined(job, held, folder, start)
            self._remove_pieces(job)
            return done
        held.begin()
        kind = input_kind(str(held.path))
        ranges = self._ranges(held, kind)
        if ranges:
            return Cut(held.sha256(), ranges, perf_counter() - start)
        return self._whole(held, kind, folder, start)

    def _ranges(self, held: HeldInput, kind: InputKind) -> tuple[FrameRange, ...]:
        """The pieces of an input; none if it stays whole. Raises MediaError."""
        config = self._config
        if config.whole or why_kind_stays_whole(kind, config.settings):
            return ()
        index = index_frames(held.path)
        if why_frames_stay_whole(index, config.piece_frames):
            return ()
        self._index = held.sha256(), index
        return cut_frames(index.frames, config.piece_frames, config.lead)

    def _whole(self, held: HeldInput, kind: InputKind, folder: Path, start: float) -> InputDone:
        """All of an input in one go."""
        made_by = made_of([*self._config.made_from, "range=0,None", *held.told])
        rendered = self._rendered(held, kind, folder, made_by)
        done = InputDone(
            held.sha256(), held.size_bytes, rendered.frames, {}, {}, 0.0, self._facts.name,
            rendered.backend, rendered.renderer, agreement=rendered.agreement, cut_off=rendered.cut_off,
            notes=rendered.notes,
        )  # fmt: skip
        return replace(self._published(done, held.source, rendered.files, made_by), seconds=perf_counter() - start)

    def _piece(self, job: RenderPiece, held: HeldInput, folder: Path, start: float) -> PieceDone:
        done = PieceDone(job.piece, job.range, 0, {}, 0.0, self._facts.name)
        if self._index is None or self._index[0] != job.sha256:
            self._index = job.sha256, index_frames(held.path)
        try:
            rendered = self._rendered(held, "recording", folder, None, job.range, self._index[1])
        except UnfitPieceError as error:
            return replace(done, seconds=perf_counter() - start, unfit=failure_reason(error))
        held.check()
        files = {kind: piece_name(job, self._config.made_of_frames, file) for kind, file in rendered.files.items()}
        for kind, file in rendered.files.items():
            publish(file, self._config.staging / files[kind])
        return replace(
            done, frames=rendered.frames, files=files, seconds=perf_counter() - start,
            decoded_head=rendered.decoded_head, decoded_tail=rendered.decoded_tail, agreement=rendered.agreement,
            notes=rendered.notes, backend=rendered.backend, renderer=rendered.renderer,
            cut_off=rendered.cut_off if job.is_last else None,
        )  # fmt: skip

    def _joined(self, job: JoinPieces, held: HeldInput, folder: Path, start: float) -> InputDone:
        """Raises PieceError where pieces are not there any more, or damaged: then all should be rendered again."""
        staging, cut_off = self._config.staging, job.pieces[-1].cut_off
        made_by = None if cut_off else made_of([*self._config.made_from, "range=0,None", *held.told])
        files, warnings, frames = dict[str, Path](), list[str](), sum(piece.frames for piece in job.pieces)
        for kind in job.pieces[0].files:
            self._check_stopped()
            paths = [staging / piece.files[kind] for piece in job.pieces]
            if gone := sum(not path.exists() for path in paths):
                raise PieceError(f"{gone} of {len(paths)} pieces are gone")
            files[kind] = folder / f"{kind}{paths[0].suffix}"
            if paths[0].suffix:
                sound = held.path if kind == PICTURE else None
                joined = join_video(paths, files[kind], sound, made_by=made_by)
            else:
                joined = join_folders(paths, files[kind], made_by)
            warnings += joined.warnings
            if joined.frames != frames:
                raise PieceError(f"the pieces have {joined.frames} frames, not the {frames} made")
        held.check()
        done = InputDone(
            job.sha256, held.size_bytes, frames, {}, {}, 0.0, self._facts.name,
            _told(piece.backend for piece in job.pieces), _told(piece.renderer for piece in job.pieces),
            len(job.pieces), max(piece.range.lead for piece in job.pieces), together(job.pieces), cut_off,
            tuple(dict.fromkeys([*(note for piece in job.pieces for note in piece.notes), *warnings])),
        )  # fmt: skip
        placed = self._published(done, job.input, files, made_by)
        return replace(placed, seconds=sum(piece.seconds for piece in job.pieces) + perf_counter() - start)

    def _rendered(
        self,
        held: HeldInput,
        kind: InputKind,
        folder: Path,
        made_by: str | None,
        piece: FrameRange | None = None,
        index: FrameIndex | None = None,
    ) -> Rendered:
        rendered = self._rendering.render(self._engine, held.path, kind, folder, made_by, piece, index)
        self._facts = replace(self._facts, backend=rendered.backend, renderer=rendered.renderer)
        return rendered

    def _published(
        self, done: InputDone, source: ArchiveInput, files: Mapping[str, Path], tag: str | None
    ) -> InputDone:
        """Give results their names, and tell of them. Raises MediaError."""
        self._check_stopped()
        config = self._config
        rules = PlaceRules(dict(source.own), config.overwrites, config.began_ns, tag)
        placed = place_results(config.out, source.name, files, rules)
        done = replace(
            done, files=placed.files, file_bytes=placed.file_bytes, file_sha256=placed.file_sha256,
            file_modified_ns=placed.file_modified_ns,
        )  # fmt: skip
        if placed.name == source.name:
            return done
        note = f"called '{placed.name}': something else has the name '{source.name}'"
        return replace(done, name=placed.name, notes=(*done.notes, note))

    def _remove_pieces(self, job: JoinPieces) -> None:
        for name in (name for piece in job.pieces for name in piece.files.values()):
            path = self._config.staging / name
            with contextlib.suppress(OSError):
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink()

    def _check_stopped(self) -> None:
        if self._engine.stopping.is_set():
            raise StoppedError

    def _check_machine(self) -> None:
        """Raise MachineError for what this machine lacks in any case."""
        if differing := versions_differ(self._config.versions, own_versions()):
            raise MachineError(differing)
        if not self._config.staging.is_dir():
            raise MachineError(f"does not see '{self._config.staging}': all nodes have to share the output folder")


def together(pieces: Sequence[PieceDone]) -> Agreement | None:
    """What was sampled of all pieces."""
    found = [piece.agreement for piece in pieces if piece.agreement]
    if not found:
        return None
    return Agreement(
        sum(each.frames for each in found),
        min(each.least_iou for each in found),
        max(each.largest_error for each in found),
    )


def _told(values: Iterator[str]) -> str:
    """Each of them once."""
    return ", ".join(dict.fromkeys(value for value in values if value))


def _check_name(source: ArchiveInput) -> None:
    """Raise InputError for a name that would lead out of the output folder."""
    parts = PurePosixPath(source.name.replace("\\", "/")).parts
    if not parts or ".." in parts or parts[0].startswith(("/", ".")) or (os.name == "nt" and ":" in source.name):
        raise InputError(f"results cannot be called '{source.name}'")
