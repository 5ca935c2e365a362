"""Figures and words go in; they are drawn over the picture, readable whatever it shows. Called within Gui.draw."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from ..console import one_line
from ..frame.figures import CameraFigures, Figures, FigureSummary
from ..frame.stats import TimeSummary
from .draw import BRIGHT, CPU, DIM, GPU, LARGE, LATE, LATE_SHARE, OPAQUE, PADDING, PLAIN, Painter

_MARGIN, _GRAPH, _GAP = 0.6, 3.4, 0.45  # em
_MESSAGE = 5.2  # em from the bottom to the top of messages
_NAME_LETTERS = 16
_COLUMN = "{:>6}"
_HEADINGS = "".join(map(_COLUMN.format, ("p50", "p95", "p99", "max")))
_NOTE_LETTERS = 80
_CAMERA_LETTERS = 54  # its words in four lines


@dataclass(frozen=True)
class Facts:
    """What stays the same from frame to frame. `note` says why there are no GPU times; None where there are."""

    renderer: str
    backend: str
    model: str
    precision: str
    dispatches: int
    budget_ms: float  # between two frames of the source; 0 if unknown
    note: str | None = None


@dataclass(frozen=True)
class Block:
    """Lines of text in one colour, from a column and a line of the panel on; both in letters of its font."""

    column: int
    line: int
    color: int
    text: str


@dataclass(frozen=True)
class Paragraph:
    """Lines of text in one colour, not yet in a place."""

    color: int
    lines: list[str]


@dataclass(frozen=True)
class Texts:
    """The words of the performance panel, laid out. Lines of the table are counted from below the graph."""

    header: str
    short_header: str
    blocks: tuple[Block, ...]
    columns: int
    lines: int


def performance(figures: Figures, facts: Facts) -> None:
    """The panel at the top left: header, graph of frame times, table, camera, facts; less of it in small pictures."""
    painter = Painter()
    summary = figures.summary
    late = 0 < LATE_SHARE * facts.budget_ms < summary.frame_ms
    letters = int((painter.width / painter.em - 2 * (_MARGIN + PADDING)) * painter.em / painter.letter)
    room = painter.height / painter.em - 2 * (_MARGIN + PADDING)
    head, graph = 1.0, _GRAPH + 2 * _GAP
    choices = _choices(summary, replace(facts, budget_ms=0.0), letters)  # a camera's budget is another in each frame
    fitting = (texts for texts in choices if texts.columns <= letters and head + graph + texts.lines <= room)
    texts = next(fitting, choices[-1])
    has_graph = head + graph <= room
    header = texts.header if len(texts.header) <= letters else texts.short_header
    columns = max(len(header), texts.columns)
    height = head + (graph if has_graph else 0) + texts.lines
    x, y = painter.box(_MARGIN, _MARGIN, columns * painter.letter / painter.em, height)
    painter.text(x, y, LATE if late else BRIGHT, header)
    y += painter.em * (1 + _GAP)
    if has_graph:
        painter.graph(
            x, y, columns * painter.letter, _GRAPH * painter.em, figures.intervals_ms, figures.window, facts.budget_ms
        )
    y += painter.em * (_GRAPH + _GAP)
    for block in texts.blocks:
        painter.text(x + block.column * painter.letter, y + block.line * painter.em, block.color, block.text)


def key_list(rows: Sequence[tuple[str, str]]) -> None:
    """Keys and what they do, in the middle."""
    painter = Painter(in_front=True)
    keys, words = ([_plain(row[side]) for row in rows] for side in (0, 1))
    wide = max(map(len, keys), default=0) + 2
    columns = wide + max(map(len, words), default=0)
    x, y = painter.centred(columns, len(rows))
    painter.text(x, y, CPU, "\n".join(keys))
    painter.text(x + wide * painter.letter, y, PLAIN, "\n".join(words))


def status(text: str, recording: str = "") -> None:
    """One line at the bottom left; what is being recorded comes first, marked red. One of the two may be empty."""
    painter, text, recording = Painter(), _plain(text), _plain(recording)
    mark = 2 if recording else 0  # letters
    start = mark + len(recording) + (3 if recording and text else 0)
    top = painter.height / painter.em - _MARGIN - 1 - 2 * _GAP
    x, y = painter.box(_MARGIN, top, (start + len(text)) * painter.letter / painter.em, 1, _GAP)
    if recording:
        painter.dot(x, y, LATE)
        painter.text(x + mark * painter.letter, y, BRIGHT, recording)
    if text:
        painter.text(x + start * painter.letter, y, PLAIN, text)


def signal(text: str) -> None:
    """A few large words in the middle, above messages: what the user must know about the camera."""
    painter, text = Painter(in_front=True), _plain(text)
    letters = max(1, int((painter.width - 2 * (_MARGIN + PADDING) * painter.em) / painter.large_letter))
    lines = _wrapped([text], letters)
    wide, high = max(map(len, lines)) * painter.large_letter / painter.em, len(lines) * LARGE
    left, top = (
        (painter.width / painter.em - wide) / 2 - PADDING,
        painter.height / painter.em - _MESSAGE - _GAP - high - 2 * PADDING,
    )
    x, y = painter.box(max(0.0, left), max(0.0, top), wide, high, color=OPAQUE)
    painter.text(x, y, BRIGHT, "\n".join(lines), LARGE)


def progress(title: str, done: int, total: int) -> None:
    """A bar in the middle that says how much is done; without an end in sight (total 0) it stays empty."""
    painter, title = Painter(), _plain(title)
    share = min(1.0, max(0.0, done / total)) if total > 0 else 0.0
    count = f"{done}/{total}" if total > 0 else ""
    columns = max(len(title) + 2 + len(count), 36)
    x, y = painter.centred(columns, 2)
    painter.text(x, y, BRIGHT, title)
    painter.text(x + (columns - len(count)) * painter.letter, y, DIM, count)
    y += 1.4 * painter.em
    painter.bar(x, y, columns * painter.letter, 0.4 * painter.em, share)


def message(text: str) -> None:
    """Lines of words at the bottom, in the middle, above the status line."""
    painter = Painter(in_front=True)
    letters = max(1, int((painter.width - 2 * (_MARGIN + PADDING) * painter.em) / painter.letter))
    lines = [line for words in text.split("\n") for line in _wrapped([_plain(words)], letters)]
    wide, high = max(map(len, lines)) * painter.letter / painter.em, len(lines)
    left = max(_MARGIN, (painter.width / painter.em - wide) / 2 - PADDING)
    x, y = painter.box(left, painter.height / painter.em - _MESSAGE + 1 - high, wide, high)
    painter.text(x, y, BRIGHT, "\n".join(lines))


@lru_cache(maxsize=8)
def _choices(summary: FigureSummary, facts: Facts, letters: int) -> tuple[Texts, ...]:
    """The panel's words, all of them or fewer: the last choice is the header alone.

    `letters` is the width of the picture in them, for lines that must be broken.
    """
    short = f"{summary.frames_per_s:.1f} fps  {summary.frame_ms:.1f} ms"
    header = short if summary.camera else f"{short}   dropped {summary.dropped}  repeated {summary.repeated}"
    table, columns = _table(summary)
    camera_wide = min(_CAMERA_LETTERS, letters)
    wide = min(max(columns, len(header), camera_wide if summary.camera else 0), letters)
    moment = Paragraph(PLAIN, _wrapped(_moment(summary), wide))
    still = Paragraph(DIM, _wrapped(_still(summary, facts), wide))
    table_lines = len(summary.stages) + 1 + (any(stage.gpu for stage in summary.stages))
    below = _stacked([*_camera(summary, wide), moment, still], table_lines)
    brief = _stacked(_camera(summary, camera_wide))
    choices = [((*table, *below), max(columns, _width(below))), (brief, _width(brief)), ((), 0)]
    return tuple(Texts(header, short, blocks, columns, _height(blocks)) for blocks, columns in choices)


def _camera(summary: FigureSummary, wide: int) -> list[Paragraph]:
    """What is known of the camera, and how old its pictures are when they are shown; nothing for recordings."""
    camera, age = summary.camera, summary.age
    if camera is None:
        return []
    told = "age at swap unknown" if age is None else f"age at swap {age.median_ms:.0f} ms, p95 {age.p95_ms:.0f}"
    counts = [f"used {camera.used}", f"dropped {camera.dropped}", f"repeated {camera.repeated}"]
    return [
        Paragraph(PLAIN, _wrapped([f"camera {camera.frames_per_s:.1f} fps", *counts, *_lost(camera)], wide)),
        Paragraph(PLAIN, _wrapped([told, f"{summary.in_flight:.1f} frames in flight"], wide)),
        Paragraph(DIM, _wrapped([f"stamps: {_plain(camera.stamps)}; sensor, cable and screen come on top"], wide)),
        Paragraph(PLAIN, _wrapped([_plain(camera.work)], wide) if camera.work else []),
    ]


def _lost(camera: CameraFigures) -> Iterable[str]:
    return [f"lost {camera.lost}"] if camera.lost else []


def _stacked(paragraphs: Iterable[Paragraph], line: int = 0) -> tuple[Block, ...]:
    """Paragraphs below each other, from a line on."""
    blocks = []
    for paragraph in paragraphs:
        if paragraph.lines:
            blocks.append(Block(0, line, paragraph.color, "\n".join(paragraph.lines)))
            line += len(paragraph.lines)
    return tuple(blocks)


def _width(blocks: Iterable[Block]) -> int:
    return max((block.column + len(line) for block in blocks for line in block.text.split("\n")), default=0)


def _height(blocks: Iterable[Block]) -> int:
    return max((block.line + block.text.count("\n") + 1 for block in blocks), default=0)


def _table(summary: FigureSummary) -> tuple[tuple[Block, ...], int]:
    """The table's blocks and its width: CPU and GPU times side by side, or wall clock alone under the same headings."""
    names = "\n".join(stage.name[:_NAME_LETTERS] for stage in summary.stages)
    cpu = "\n".join(_cells(stage.cpu) for stage in summary.stages)
    column, end = _NAME_LETTERS, _NAME_LETTERS + len(_HEADINGS)
    if not any(stage.gpu for stage in summary.stages):
        heading = (Block(0, 0, DIM, "wall ms"), Block(column, 0, DIM, _HEADINGS))
        return (*heading, Block(0, 1, PLAIN, names), Block(column, 1, CPU, cpu)), end
    gpu = "\n".join(_cells(stage.gpu) for stage in summary.stages)
    headings = (
        Block(column + 2, 0, CPU, "CPU ms"),
        Block(end + 4, 0, GPU, "GPU ms"),
        Block(column, 1, DIM, f"{_HEADINGS}  {_HEADINGS}"),
    )
    blocks = (Block(0, 2, PLAIN, names), Block(column, 2, CPU, cpu), Block(end + 2, 2, GPU, gpu))
    return (*headings, *blocks), end + 2 + len(_HEADINGS)


def _cells(times: TimeSummary | None) -> str:
    if times is None:
        return "".join(_COLUMN.format("-") for _ in range(4))
    return "".join(map(_COLUMN.format, map(_ms, (times.median_ms, times.p95_ms, times.p99_ms, times.max_ms))))


def _ms(value: float) -> str:
    """As many digits as fit and are significant."""
    return f"{value:.2f}" if value < 100 else f"{value:.1f}" if value < 1000 else f"{value:.0f}"


def _moment(summary: FigureSummary) -> Iterable[str]:
    yield f"up {_bytes(summary.uploaded_bytes)}/frame"
    yield f"read back {_bytes(summary.readback_bytes)}/frame"
    yield f"CPU {summary.process_percent:.0f}%"
    if summary.overlay_ms is not None:
        yield f"overlay {_ms(summary.overlay_ms)} ms"


def _still(summary: FigureSummary, facts: Facts) -> Iterable[str]:
    if summary.camera:
        yield _plain(summary.camera.description)
    yield f"{_plain(facts.model)} {facts.precision}"
    yield f"{facts.backend}, {facts.dispatches} dispatches" if facts.dispatches else facts.backend
    yield _plain(facts.renderer)
    if facts.note:
        yield _plain(facts.note)


def _bytes(count: int) -> str:
    return f"{count} B" if count < 1000 else f"{count / 1e3:.1f} kB" if count < 1e6 else f"{count / 1e6:.2f} MB"


def _wrapped(phrases: Iterable[str], wide: int) -> list[str]:
    """Phrases on as few lines as they fit on; one longer than a line gets lines of its own, broken between words."""
    lines = [""]
    for phrase in phrases:
        is_long = len(phrase) > wide
        if is_long and lines[-1]:
            lines.append("")
        apart = "   " if lines[-1] else ""
        for word in phrase.split(" ") if is_long else [phrase]:
            if len(lines[-1]) + len(apart) + len(word) <= wide:
                lines[-1] += apart + word
            else:
                lines.append(word[:wide])
            apart = " "
    return lines


def _plain(text: str) -> str:
    """Text on one line, shortened, without characters that no font shows."""
    return one_line(text)[: 2 * _NOTE_LETTERS]
