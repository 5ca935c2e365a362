"""Makes matplotlib figures and saves them as files.

matplotlib is an extra of the program: whoever draws checks that it is installed before anything is measured.
"""

from pathlib import Path
from typing import Any

from texelflow.gpu_delegate.base.errors import MediaError, UsageError

NO_MATPLOTLIB = "--plot needs matplotlib: pip install matplotlib"
# Told apart by color-blind people (Okabe and Ito, "Color Universal Design")
ORANGE, SKY_BLUE, GREEN, YELLOW = "#E69F00", "#56B4E9", "#009E73", "#F0E442"
BLUE, VERMILION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"


def check_matplotlib() -> tuple[Any, Any]:
    """Its classes of figures and of canvases without a window. Raises UsageError where it is not installed."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError(NO_MATPLOTLIB) from None
    return Figure, FigureCanvasAgg


def new_figure(width_inches: float, height_inches: float, layout: str | None = "constrained") -> Any:
    """An empty figure; with layout None whoever draws places all axes. Raises UsageError without matplotlib."""
    figure_class, canvas_class = check_matplotlib()
    figure = figure_class(figsize=(width_inches, height_inches), layout=layout)
    canvas_class(figure)
    return figure


def save_figure(path: Path, figure: Any, dpi: int = 120) -> None:
    """The figure as a file of the path's ending, text as text. Raises MediaError where it cannot be written."""
    from matplotlib import rc_context

    try:
        with rc_context({"svg.fonttype": "none", "svg.hashsalt": "texelflow"}):  # equal pictures are equal files
            figure.savefig(path, dpi=dpi, metadata={"Date": None} if path.suffix.lower() == ".svg" else None)
    except OSError as error:
        raise MediaError(f"'{path}' cannot be written: {error.strerror}; choose another place") from error
