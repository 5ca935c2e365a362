"""Makes the letters that are drawn beside what was found: letters.png.

    python assets/make_letters.py

They are those of the overlay: Inconsolata Medium, which imgui-bundle ships.
"""

from __future__ import annotations

import sys
from pathlib import Path

try:
    import imgui_bundle
    from PIL import Image, ImageDraw, ImageFont
except ImportError as missing:
    sys.exit(f"{missing.name} is missing: pip install imgui-bundle pillow")

HERE = Path(__file__).parent
FONT = Path(imgui_bundle.__file__).parent / "assets" / "fonts" / "Inconsolata-Medium.ttf"
FIRST, LAST = " ", "~"
COLUMNS, WIDTH, HEIGHT = 16, 32, 64  # letters in a row, pixels of one


def main() -> None:
    """Writes letters.png: letters of ASCII from the space on, row by row, white on black."""
    letters = [chr(code) for code in range(ord(FIRST), ord(LAST) + 1)]
    rows = -(-len(letters) // COLUMNS)
    picture = Image.new("L", (COLUMNS * WIDTH, rows * HEIGHT))
    pen, font = ImageDraw.Draw(picture), ImageFont.truetype(str(FONT), HEIGHT)
    for place, letter in enumerate(letters):
        x, y = place % COLUMNS * WIDTH, place // COLUMNS * HEIGHT
        pen.text((x + WIDTH / 2, y + 0.78 * HEIGHT), letter, 255, font, anchor="ms")
    picture.save(HERE / "letters.png", optimize=True)


if __name__ == "__main__":
    main()
