"""Which groups of nodes would depend on themselves, against a search from node to node."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from texelflow.gpu_delegate.plan.precedence import Precedence

Needs = Sequence[Sequence[int]]


def waits(needs: Needs, groups: dict[int, frozenset[int]], nodes: frozenset[int]) -> bool:
    """Whether a way leads out of the nodes, against the arrows of the graph, and back; groups are passed as one."""
    waiting = [need for node in nodes for need in needs[node] if need not in nodes]
    seen: set[int] = set()
    while waiting:
        node = waiting.pop()
        if node in nodes:
            return True
        if node not in seen:
            seen |= groups[node]
            waiting += [need for member in groups[node] for need in needs[member]]
    return False


@given(st.data())
def test_groups_that_wait_for_themselves_are_those_that_a_search_finds(data: st.DataObject) -> None:
    """Each node joins one or two of the groups before it, where that makes no circle, as kernels grow."""
    count = data.draw(st.integers(1, 24))
    needs = [data.draw(st.lists(st.integers(0, node - 1), max_size=3)) if node else [] for node in range(count)]
    precedence, groups = Precedence(needs), dict[int, frozenset[int]]()
    for node in range(count):
        joined = data.draw(st.lists(st.integers(0, node - 1), max_size=2)) if node else []
        for nodes in (frozenset({node}).union(*(groups[other] for other in joined)), frozenset({node})):
            expected = waits(needs, groups, nodes)
            assert precedence.waits_for_itself(nodes) == expected
            if not expected:
                break
        precedence.place(nodes)
        groups.update(dict.fromkeys(nodes, nodes))


def test_who_waits_for_a_group_waits_for_what_it_takes_in_later() -> None:
    """1 reads 0; 2 stands alone; 3 reads 2 and joins 0: from then on 1 waits for 2, and the two cannot be one."""
    precedence = Precedence([[], [0], [], [2], [1]])
    for nodes in ({0}, {1}, {2}, {0, 3}):
        precedence.place(frozenset(nodes))
    assert precedence.waits_for_itself(frozenset({1, 2, 4}))
    assert not precedence.waits_for_itself(frozenset({0, 1, 3, 4}))
