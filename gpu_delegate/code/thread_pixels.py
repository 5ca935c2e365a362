"""Which pixels a thread computes, and where they lie in a map, for each kind of tile.

They lie in a column, one below the other; of a flat tile as far apart in memory as there are threads; and of a tile
`across` in one row, as far apart as there are threads along it. What would lie past the end is the last pixel again.
"""

from ..device.tile import Tile
from ..model.layout import MapShape
from .indices import Index, Place
from .vocabulary import X0, Y0, Operand, Operation, Value


def place_of_pixel(tile: Tile, domain: MapShape, row: int) -> Place:
    """(b, y, x) of pixel `row` of a thread."""
    if tile.across:
        step, _ = tile.area(domain)
        y = Index.variable(Y0, 0, domain.rows - 1)
        x = Index.variable(X0, 0, step - 1).plus(row * step).clamped(0, domain.width - 1)
    else:
        y = Index.variable(Y0, 0, domain.rows - tile.rows).plus(row)
        x = Index.variable(X0, 0, domain.width - 1)
    return y.over(domain.height), y.modulo(domain.height), x


def row_and_column(tile: Tile, domain: MapShape, row: int) -> tuple[Value, Value]:
    """(b * height + y, x) of pixel `row` of a thread, in a tile that is not flat."""
    return (Y0, _column(tile, domain, row)) if tile.across else (Y0 + row, X0)


def index_of_pixel(tile: Tile, domain: MapShape, row: int) -> Operand:
    """Its index in a map of the domain's size."""
    if tile.across:
        return Y0 * domain.width + _column(tile, domain, row)
    (width, _), pixels = tile.area(domain), domain.pixels
    index = (Y0 + row) * width + X0
    return Operation("minimum", (index, pixels - 1)) if (row + 1) * width > pixels and tile.flat else index


def index_in_smaller(tile: Tile, domain: MapShape, shape: MapShape, row: int) -> tuple[Operand, bool]:
    """Its index in a map that is broadcast where its size is 1, and whether that has to be computed."""
    y, column = row_and_column(tile, domain, row)
    x: Operand = 0 if shape.width == 1 else column
    if shape.rows == 1:
        return x, isinstance(x, Operation)
    if shape.rows < domain.rows:
        y = y / domain.height if shape.batch > 1 else y % domain.height
    return y * shape.width + x, True


def _column(tile: Tile, domain: MapShape, row: int) -> Value:
    """Of pixel `row` of a thread whose pixels lie in one row."""
    step, _ = tile.area(domain)
    x = X0 + row * step if row else X0
    return Operation("minimum", (x, domain.width - 1)) if (row + 1) * step > domain.width else x
