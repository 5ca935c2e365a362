"""Which variables of a graph a delegate may keep where other graphs of the interpreter have them, too.

TensorFlow Lite hands one graph after the other over, and has a value of its own for a variable that it still runs the
operators of. So a variable of several graphs is the delegate's where it can take all operators of each of these, and
where it is alike in them: of one kind, and set once by the same subgraphs, which TensorFlow Lite runs once in each.
"""

from collections import Counter
from collections.abc import Callable, Container, Mapping

from ..base.errors import DeviceError, ModelError
from ..model.graph import Graph
from ..passes.kept_states import handles_of, state_groups, variable_kinds
from .context_model import called_once, called_subgraphs, variables_in
from .native_operators import subgraph_context
from .structs import TfLiteContext

_MOST_SUBGRAPHS = 1 << 10
_WHY = "a variable, {}, is also that of a subgraph which TensorFlow Lite runs, at least in part, or where it is another"
GraphIn = Callable[[TfLiteContext], Graph]  # of one subgraph
TakesAll = Callable[[Graph], bool]  # whether a delegate takes all operators of a graph


def left_variables(context: TfLiteContext, graph_in: GraphIn, takes_all: TakesAll) -> frozenset[str]:
    """The variables of an interpreter that stay in TensorFlow Lite, told in the context of its first graph."""
    graphs, called, set_by = dict[int, Graph](), set[int](), dict[int, frozenset[int]]()
    users = dict[int, frozenset[str]]()
    for number in range(_MOST_SUBGRAPHS):
        try:
            with subgraph_context(context, number) as inner:
                users[number], set_by[number] = variables_in(inner), called_once(inner)
                others = called_subgraphs(inner)
                graphs[number] = graph_in(inner)
        except DeviceError:  # there is none
            break
        except ModelError:
            others = None
        called |= others - set_by[number] if others is not None else {*range(_MOST_SUBGRAPHS)} - {number}
    for number in frozenset().union(*set_by.values()):
        users.pop(number, None)
    count = Counter(name for names in users.values() for name in names)
    shared = {name for name, users_of in count.items() if users_of > 1}
    left = _unlike({number: graphs[number] for number in users if number in graphs}, set_by) & shared
    for number, names in users.items():
        if shared & names and (number in called or number not in graphs or not takes_all(graphs[number])):
            left |= shared & names
    return frozenset(left)


def _unlike(graphs: Mapping[int, Graph], set_by: Mapping[int, frozenset[int]]) -> set[str]:
    """The variables that are not the same in all of these graphs that have them."""
    found, seen = set[str](), dict[tuple[str, str], object]()
    for number, graph in graphs.items():
        said = {(name, "set by"): set_by[number] for name in handles_of(graph)}
        kinds = {(name, "kind"): (t.shape, t.dtype, t.quantization) for name, t in variable_kinds(graph).items()}
        found |= {key[0] for key, each in (said | kinds).items() if seen.setdefault(key, each) != each}
    return found


def left_operators(graph: Graph, left: Container[str]) -> Mapping[int, str]:
    """The operators of variables that stay in TensorFlow Lite, by their positions, and why."""
    groups = state_groups(graph).items()
    return {number: _WHY.format(name) for name, numbers in groups if name in left for number in numbers}
