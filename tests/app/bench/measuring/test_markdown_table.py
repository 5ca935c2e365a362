"""Tables in Markdown: columns that line up, and cells that stay cells."""

from texelflow.app.bench.measuring.markdown_table import markdown_lines


def test_columns_line_up_but_for_the_last() -> None:
    assert markdown_lines([("op", "ms", "why"), ("CONV_2D", "1", "-"), ("ADD", "12.5", "a long reason")]) == [
        "| op      | ms   | why |",
        "|---------|------|-----|",
        "| CONV_2D | 1    | -   |",
        "| ADD     | 12.5 | a long reason |",
    ]


def test_markdown_is_safe_from_what_stands_in_cells() -> None:
    assert markdown_lines([("a", "b"), ("a|b", "-")])[2] == "| a\\|b | - |"
