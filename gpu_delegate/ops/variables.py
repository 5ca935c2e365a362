"""Variables, which keep a value from run to run: file forms; passes/kept_states.py makes inputs and outputs of them."""

from collections.abc import Mapping
from dataclasses import replace

from ..model.graph import Attributes, Graph, Node, VarHandle
from ..model.operators import EncodedOperator, Operator, attributes_of
from .record import Example, FileForm, OpRecord, OptionsStruct

VAR_HANDLE, READ, ASSIGN, CALL_ONCE = VARIABLE_OPS = ("VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "CALL_ONCE")
RESOURCE = "resource"  # the type of what a VAR_HANDLE gives


def variable_name(container: object, shared_name: object) -> str:
    """What a VAR_HANDLE's options call its variable: TensorFlow Lite, too, knows it by both."""
    parts = (part for part in (container, shared_name) if isinstance(part, bytes) and part)
    return "/".join(part.decode("utf-8", "replace") for part in parts)


def with_initial(attributes: Attributes, values: Mapping[str, bytes], is_told: bool) -> Attributes:
    """Those of a VAR_HANDLE with what is said of its variable, by itself where `is_told`; others as they are."""
    if not isinstance(attributes, VarHandle):
        return attributes
    return replace(attributes, initial=values.get(attributes.name, attributes.initial if is_told else b""))


def read_handle(operator: Operator) -> Attributes:
    options = operator.options("VarHandleOptions")
    if operator.outputs[0].dtype != RESOURCE:
        operator.damaged(f"gives {operator.outputs[0].dtype}")
    return VarHandle(variable_name(options.Container(), options.SharedName()), operator.custom_options)


def write_handle(graph: Graph, node: Node) -> EncodedOperator:
    """What the variable holds at first is in a subgraph of the file (reading/initial_values.py)."""
    return EncodedOperator((), "VarHandleOptions", {"SharedName": attributes_of(node, VarHandle).name.encode()})


def read_access(operator: Operator) -> Attributes:
    """READ_VARIABLE and ASSIGN_VARIABLE: input 0 is the resource."""
    if (given := operator.inputs[0]) is None or given.dtype != RESOURCE:
        operator.damaged("input 0 is no variable")
    if any(given and given.dtype == RESOURCE for given in operator.inputs[1:]):
        operator.damaged("assigns a variable itself")
    return Attributes()


def write_access(graph: Graph, node: Node) -> EncodedOperator:
    return EncodedOperator(node.inputs)


def read_call_once(operator: Operator) -> Attributes:
    """The reader has looked at what it calls, and given that to the variables."""
    return Attributes()


RECORDS = (
    OpRecord(
        VAR_HANDLE,
        "state",
        FileForm(
            read_handle, write_handle, (), (0, 0), dtypes=(), out_dtypes=(RESOURCE,),
            struct=OptionsStruct("VarHandleOptions", "Container:s SharedName:s"),
        ),
        Example((), (), attributes=VarHandle(), out_dtype=RESOURCE),
    ),
    OpRecord(
        READ,
        "state",
        FileForm(read_access, write_access, (0,), dtypes=(RESOURCE,), out_dtypes=()),
        Example(((),), (2, 5), dtype=RESOURCE),
    ),
    OpRecord(
        ASSIGN,
        "state",
        FileForm(read_access, write_access, (0, 1), (2, 2), (0, 0), dtypes=(), first_dtypes=(RESOURCE,)),
        Example(((), (2, 5)), ()),
    ),
    OpRecord(CALL_ONCE, "state", FileForm(read_call_once, write_access, (), (0, 0), (0, 0), dtypes=())),
)  # fmt: skip
