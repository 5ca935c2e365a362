"""The table of docs/papers.md: its cells, and where it goes."""

from tests.tools.papers import BEGIN, DOCUMENT, END, TIMED, WAYS, times_table, where, written
from texelflow.app.models.networks import NETWORKS


def test_what_takes_longer_than_native_code_is_told_by_how_much() -> None:
    own = {"min_ms": 2.0, "median_ms": 2.5, "mmac": 569.4, "renderer": "code on the CPU"}
    slow = {"min_ms": 10.0, "median_ms": 11.0, "mmac": 569.4, "renderer": "llvmpipe"}
    found = {"mobilenet-v1": {"OpenGL": slow, "native": own, "XNNPACK": None}}
    head, _, row = times_table(found).splitlines()
    assert [cell.strip() for cell in row.strip("|").split("|")] == [
        *("mobilenet-v1", "569", "10.00/11.00", "5.00", "2.00/2.50", "-", "-")
    ]
    assert head.count("|") == row.count("|")
    assert where(found) == "Least/median, one thread but for OpenGL: llvmpipe, code on the CPU."


def test_the_document_has_a_place_for_the_table_of_networks_that_there_are() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert text.count(BEGIN) == text.count(END) == 1
    renewed = written(text, "| a |")
    assert f"{BEGIN}\n| a |\n{END}" in renewed
    assert renewed.partition(BEGIN)[0] == text.partition(BEGIN)[0]
    assert renewed.partition(END)[2] == text.partition(END)[2]
    assert set(TIMED) <= set(NETWORKS)
    assert set(WAYS) == {"OpenGL", "native", "XNNPACK"}
