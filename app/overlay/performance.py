"""The performance panel: figures of the run in a corner of the picture. Called within Gui.draw."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from ..frame.stages.frame_figures import SWAP, CameraFigures, Figures, FigureSummary, StageFigures
from ..frame.stages.frame_pipeline import DECODE
from ..frame.stages.stats import TimeSummary
from ..settings.settings import Corner
from .draw import BRIGHT, CPU, DIM, GPU, LATE, LATE_SHARE, PADDING, PLAIN, Painter
from .overlay_placement import ScreenArea, in_corner
from .overlay_text import plain, wrapped

_GRAPH, _SMALL_GRAPH, _GAP = 3.4, 2.2, 0.45  # em
_MOST_SHARE = 0.2  # of a picture, that three lines and the graph cover at most
_LINE_LETTERS, _LEAST_LETTERS = 50, 12  # of the three lines; narrower ones say nothing
_NAME_LETTERS = 16
_COLUMN = "{:>6}"
_HEADINGS = "".join(map(_COLUMN.format, ("p50", "p95", "p99", "max")))
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
    """Lines of text in one color, from a column and a line of the panel on; both in letters of its font."""

    column: int
    line: int
    color: int
    text: str


@dataclass(frozen=True)
class Paragraph:
    """Lines of text in one color, not yet in a place."""

    color: int
    lines: list[str]


@dataclass(frozen=True)
class FigureLook:
    """Which figures are shown, and how: three lines and a graph, or with a table of all; scale is that of the text."""

    full: bool = False
    corner: Corner = "top-left"
    scale: float = 1.0


@dataclass(frozen=True)
class FigureLayout:
    """What the panel says: a line above the graph, blocks below it, whose lines are counted from there."""

    header: str
    blocks: tuple[Block, ...] = ()
    graph: float = 0.0  # how high it is, in em; 0: there is none
    is_brief: bool = True  # covers only a part of the picture

    @cached_property
    def columns(self) -> int:
        """How wide it is, in letters."""
        return max(len(self.header), *(block.column + _width(block.text) for block in self.blocks), 0)

    @cached_property
    def lines(self) -> float:
        """How high it is, in em."""
        below = max((block.line + block.text.count("\n") + 1 for block in self.blocks), default=0)
        return 1 + (self.graph + 2 * _GAP if self.graph else 0) + below


def performance(figures: Figures, facts: Facts, look: FigureLook, free: ScreenArea) -> None:
    """The panel, in a corner of what is free of the picture; less of it where there is little room, or none at all."""
    painter = Painter(scale=look.scale)
    summary, em, letter = figures.summary, painter.em, painter.letter
    letters = int((free.width - 2 * PADDING * em) / letter)
    most_px = _MOST_SHARE * max(1.0, look.scale**2) * painter.width * painter.height
    still = replace(facts, budget_ms=0.0)  # a camera's budget is another in each frame
    for layout in _layouts(summary, still, look.full, max(_LEAST_LETTERS, letters)):
        wide, high = layout.columns * letter + 2 * PADDING * em, (layout.lines + 2 * PADDING) * em
        covers_little = not (layout.is_brief and layout.graph) or wide * high <= most_px
        if wide <= free.width and high <= free.height and covers_little:
            break
    else:
        return
    left, top = in_corner(free, look.corner, wide, high)
    x, y = painter.box(left / em, top / em, layout.columns * letter / em, layout.lines)
    late = 0 < LATE_SHARE * facts.budget_ms < summary.frame_ms
    painter.text(x, y, LATE if late else BRIGHT, layout.header)
    y += em * (1 + _GAP)
    if layout.graph:
        places = layout.columns * letter, layout.graph * em
        painter.graph(x, y, *places, figures.intervals_ms, figures.window, facts.budget_ms)
    y += em * (layout.graph + _GAP)
    for block in layout.blocks:
        painter.text(x + block.column * letter, y + block.line * em, block.color, block.text)


@lru_cache(maxsize=8)
def _layouts(summary: FigureSummary, facts: Facts, full: bool, letters: int) -> tuple[FigureLayout, ...]:
    """The panel with all there is to say or less, the most first; `letters` is the width of what is free, in them."""
    header, *more = wrapped(_rates(summary), min(_LINE_LETTERS, letters))
    stages = wrapped(_where_time_goes(summary.stages), min(_LINE_LETTERS, letters))
    model = f"{plain(facts.model)}, {facts.backend}"[: min(_LINE_LETTERS, letters)]
    lines = _stacked([Paragraph(BRIGHT, more), Paragraph(PLAIN, stages), Paragraph(DIM, [model])])
    brief = FigureLayout(header, lines, _SMALL_GRAPH), FigureLayout(header, graph=_SMALL_GRAPH), FigureLayout(header)
    shortest = FigureLayout(f"{summary.frames_per_s:.1f} fps")
    return (*([_all_figures(summary, facts, letters)] if full else []), *brief, shortest)


def _rates(summary: FigureSummary) -> Iterable[str]:
    """How many pictures there are, and how old they are when they are seen, or how long one takes."""
    yield f"{summary.frames_per_s:.1f} fps"
    yield f"dropped {summary.camera.dropped if summary.camera else summary.dropped}"
    if summary.age is not None:
        yield f"latency {summary.age.median_ms:.0f} ms, p95 {summary.age.p95_ms:.0f}"
    elif summary.work is not None:
        yield f"work {summary.work.median_ms:.1f} ms, p95 {summary.work.p95_ms:.1f}"


def _where_time_goes(stages: Sequence[StageFigures]) -> Iterable[str]:
    """The network, and what else takes longest; waiting for the screen and decoding ahead are no work of the frame."""
    taken = {each.name: _longer_ms(each) for each in stages if each.name not in (DECODE, SWAP)}
    others = sorted(taken.keys() - {"network"}, key=lambda name: (-taken[name], name))
    for name in [*(["network"] if "network" in taken else []), *others[:1]]:
        yield f"{name[:_NAME_LETTERS]} {taken[name]:.1f} ms"


def _longer_ms(stage: StageFigures) -> float:
    return max(stage.cpu.median_ms, stage.gpu.median_ms if stage.gpu else 0.0)


def _all_figures(summary: FigureSummary, facts: Facts, letters: int) -> FigureLayout:
    header = f"{summary.frames_per_s:.1f} fps  {summary.frame_ms:.1f} ms"
    if not summary.camera:
        header += f"   dropped {summary.dropped}  repeated {summary.repeated}"
    table, columns = _table(summary)
    wide = min(max(columns, len(header), _CAMERA_LETTERS if summary.camera else 0), letters)
    moment = Paragraph(PLAIN, wrapped(_moment(summary), wide))
    still = Paragraph(DIM, wrapped(_still(summary, facts), wide))
    table_lines = len(summary.stages) + 1 + (any(stage.gpu for stage in summary.stages))
    below = _stacked([*_camera(summary, wide), moment, still], table_lines)
    return FigureLayout(header, (*table, *below), _GRAPH, is_brief=False)


def _camera(summary: FigureSummary, wide: int) -> list[Paragraph]:
    """What is known of the camera, and how old its pictures are when they are shown; nothing for recordings."""
    camera, age = summary.camera, summary.age
    if camera is None:
        return []
    told = "age at swap unknown" if age is None else f"age at swap {age.median_ms:.0f} ms, p95 {age.p95_ms:.0f}"
    name = "fastest camera" if camera.cameras else "camera"
    counts = [f"used {camera.used}", f"dropped {camera.dropped}", f"repeated {camera.repeated}"]
    return [
        Paragraph(PLAIN, wrapped([f"{name} {camera.frames_per_s:.1f} fps", *counts, *_lost(camera)], wide)),
        Paragraph(PLAIN, wrapped([told, f"{summary.in_flight:.1f} frames in flight"], wide)),
        Paragraph(DIM, wrapped([f"stamps: {plain(camera.stamps)}; sensor, cable and screen come on top"], wide)),
        Paragraph(PLAIN, wrapped([plain(camera.work)], wide) if camera.work else []),
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


def _width(text: str) -> int:
    return max(map(len, text.split("\n")))


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
        yield plain(summary.camera.description)
    yield f"{plain(facts.model)} {facts.precision}"
    yield f"{facts.backend}, {facts.dispatches} dispatches" if facts.dispatches else facts.backend
    yield plain(facts.renderer)
    if facts.note:
        yield plain(facts.note)


def _bytes(count: int) -> str:
    return f"{count} B" if count < 1000 else f"{count / 1e3:.1f} kB" if count < 1e6 else f"{count / 1e6:.2f} MB"
