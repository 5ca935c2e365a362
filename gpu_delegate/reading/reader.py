"""Reads a .tflite file into an immutable Graph; a damaged or malicious file ends in one clear line.

Nothing is folded or fused here. Constants are read-only views of the file's bytes, fp16 stays float16; sparse ones are
made dense. What no rule takes becomes an opaque node, for TensorFlow Lite: only what it does not take either is called
damaged. Shapes of what operators write are those that their rules make of their inputs, as TensorFlow Lite infers them,
whatever the file records.
"""

import contextlib
import math
import os
import struct
from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import tflite

from ..base.errors import ModelError, ModelSizeError, TexelflowError, UnsupportedError, UsageError
from ..custom.known import KNOWN_CUSTOM_OPS
from ..model.graph import ABSENT, Attributes, Graph, Node, Opaque, Shape, Tensor
from ..model.operators import MAX_OPERANDS, NO_RULE, Operator, ShapeError
from ..model.reasons import BY_FUNCTION
from ..ops.called import CALLED, LOOP
from ..ops.left_to_cpu import LEFT_TO_CPU
from ..ops.record import FileForm
from ..ops.registry import OPS, SUPPORTED_OPS
from ..ops.variables import CALL_ONCE, VAR_HANDLE, with_initial
from ..passes.evaluation import can_fold, fold_value
from ..passes.kept_states import state_faults
from ..passes.quantized_node import takes_type
from ..passes.steps import has_form
from .bodies import CONSTANTS_FROM, Bodies, called_subgraphs_of, check_alike
from .bundles import model_file_bytes, model_in
from .file_options import OPTIONS_CLASSES, Options, read_custom_options, read_options
from .file_tensors import MAX_RANK, FileTensors
from .initial_values import InitialValues, initial_values
from .model_file import MAX_OPERATORS, MAX_TENSORS, ModelFile, names_of, printable_name
from .signatures import entries_of, subgraph_of, with_first_subgraph

__all__ = [
    "MAX_OPERATORS",
    "SUPPORTED_OPS",
    "load_model",
    "printable_name",
    "read_model",
]

MAX_ALL_OPERANDS = 1 << 20  # of all operators together: in a malicious file they may share one vector
MAX_CUSTOM_CODE = 1 << 10
# By type: of floats those between a size and a size that is a share of it.
_MOST_KEPT = MappingProxyType({**dict.fromkeys(("int32", "int64", "bool"), MAX_OPERANDS), "float32": MAX_RANK})
OPEN: Shape = (-1,)  # in the place of a shape that the file leaves to whoever computes the tensor
CUSTOM: int = tflite.BuiltinOperator.CUSTOM


def load_model(path: str | os.PathLike[str], subgraph: int | str = 0) -> Graph:
    """The graph of a .tflite file, or of a model in a bundle, named after it. Raises as read_model."""
    return read_model(model_file_bytes(path), Path(path).stem, subgraph)


def read_model(data: bytes, name: str = "model", subgraph: int | str = 0) -> Graph:
    """The graph of a model's bytes: of one of its subgraphs, by its number or by the name of its signature.

    Bytes of a bundle (.task) with one model are those of that.

    Raises ModelError, UsageError for a subgraph that is not there, and nothing else.
    """
    shown = printable_name(name)
    if not data:
        raise ModelError(f"{shown}: the file is empty")
    data = model_in(data, shown)
    try:
        return GraphReader(data, subgraph).graph(shown)
    except UsageError as error:
        raise UsageError(f"{shown}: {error}") from error
    except ModelSizeError as error:
        raise ModelSizeError(f"{shown}: {error}") from error
    except TexelflowError as error:
        raise ModelError(f"{shown}: {error}; the file is damaged or was written incorrectly, get it again") from error
    except (struct.error, IndexError, ValueError, TypeError, AttributeError, OverflowError) as error:
        raise ModelError(f"{shown}: the file is damaged or cut off, get it again") from error


class ReadModel(Protocol):
    """A function as read_model."""

    def __call__(self, data: bytes, name: str = "model", subgraph: int | str = 0, /) -> Graph: ...


class GraphReader:
    """Makes a subgraph of a file a graph, verified: tensors, operators, and that they can run in the file's order."""

    def __init__(self, data: bytes, subgraph: int | str = 0, bodies: Bodies | None = None) -> None:
        """`bodies` are those of the reader that reads this subgraph as one of them.

        Raises ModelError, UsageError for a subgraph that is not there.
        """
        first = ModelFile(data)
        number = subgraph_of(first, subgraph)
        self.file = ModelFile(data, number) if number else first
        self.bodies = bodies or Bodies()
        self.tensors = FileTensors(self.file, self.bodies.taken)
        self.codes: dict[int, _Code] = {}
        self.operands = 0
        self.values: dict[int, Tensor] = {}  # small ones that operators compute from constants and shapes
        self.initial: InitialValues | None = None  # of variables, once one is there
        self.unwritable: set[str] = set()
        self.next_constant = CONSTANTS_FROM

    def graph(self, name: str) -> Graph:
        """The whole graph; every tensor is written before it is read, and once."""
        inputs, outputs = self.indices(self.file.subgraph, "Inputs"), self.indices(self.file.subgraph, "Outputs")
        if ABSENT in (*inputs, *outputs):
            raise ModelError("the graph lacks an input or an output")
        for index in inputs:  # TensorFlow Lite, too, begins with the sizes in the file where these may be others
            with contextlib.suppress(UnsupportedError):
                self.tensors.reshape(index, self.tensors[index].shape)
        nodes = tuple(self.node(i) for i in range(self.file.operator_count))
        disorder = self.disorder(inputs, outputs, nodes)
        if disorder:
            self.unwritable.add(disorder)
            self.operands = 0
            nodes = tuple(self.node(i, disorder) for i in range(self.file.operator_count))
        used = {i for node in nodes for i in (*node.inputs, *node.outputs)} | {*inputs, *outputs}
        tensors: Mapping[int, Tensor] = MappingProxyType({i: self.tensors[i] for i in sorted(used - {ABSENT})})
        graph = Graph(name, tensors, nodes, inputs, outputs, b"", *self.signatures())
        whole = not self.unwritable and not self.tensors.unwritable and not state_faults(graph)
        return graph if whole else replace(graph, original=with_first_subgraph(self.file))

    def signatures(self) -> tuple[int, str, tuple[str, ...]]:
        """The subgraph's number, its signature's name, and the names of signatures that lead to others."""
        entries, number = entries_of(self.file), self.file.number
        own = next((entry.signature for entry in entries if entry.subgraph == number), "")
        return number, own, tuple(entry.signature for entry in entries if entry.subgraph != number)

    def disorder(self, inputs: tuple[int, ...], outputs: tuple[int, ...], nodes: tuple[Node, ...]) -> str:
        """Why the graph is none of values that are written once, before they are read; "" if it is one."""
        for index in inputs:
            if self.tensors[index].is_constant:
                return f"input {index} of the graph is a constant"
        written = set(inputs)
        for node in nodes:
            where = f"operator {node.index} ({node.op})"
            for i in node.inputs:
                if i != ABSENT and not self.is_given(i, written):
                    return f"{where} reads tensor {i} before anything has written it"
            for i in node.outputs:
                if i in written or self.tensors[i].is_constant:
                    return f"{where} writes tensor {i}, which has a value already"
                written.add(i)
        return next((f"nothing writes output tensor {i}" for i in outputs if not self.is_given(i, written)), "")

    def is_given(self, index: int, written: Container[int]) -> bool:
        """Whether a tensor has a value where these have been written."""
        return index in written or self.tensors.has_value(index)

    def indices(self, table: Any, field: str) -> tuple[int, ...]:
        """A vector of tensor indices, each of them ABSENT or in range."""
        indices = self.file.values(field.lower(), getattr(table, f"{field}AsNumpy")(), MAX_TENSORS)
        self.operands += len(indices)
        if self.operands > MAX_ALL_OPERANDS:
            raise ModelSizeError(f"more than {MAX_ALL_OPERANDS} inputs and outputs of operators")
        for i in indices:
            if not ABSENT <= i < self.file.tensor_count:
                raise ModelError(f"tensor {i} of {self.file.tensor_count}")
        return indices

    def node(self, index: int, refused: str = "") -> Node:
        """One operator as a node, verified by its op's rule; opaque where no rule takes it, or if it is refused."""
        table = self.file.subgraph.Operators(index)
        code = self.code(index, table.OpcodeIndex())
        inputs, outputs = self.indices(table, "Inputs"), self.indices(table, "Outputs")
        rule = OPS[code.op].file if code.op in OPS else None
        if refused:
            return self.opaque(index, code, table, inputs, outputs, refused)
        if code.op in CALLED and not code.is_custom:
            try:
                return self.call(index, code.op, table, inputs, outputs)
            except ModelSizeError:
                raise
            except (ModelError, UnsupportedError) as error:
                return self.opaque(index, code, table, inputs, outputs, str(error))
        if rule is None or (code.is_custom and code.op in BUILTIN_NAMES):
            custom = BY_FUNCTION if code.op in KNOWN_CUSTOM_OPS else NO_RULE
            reason = custom if code.is_custom else LEFT_TO_CPU.get(code.op, NO_RULE)
            return self.opaque(index, code, table, inputs, outputs, reason)
        try:
            return self.node_of(index, code.op, rule, table, inputs, outputs)
        except ModelSizeError:
            raise
        except (ModelError, UnsupportedError) as error:  # where it is about a tensor alone, it is raised again
            reason = str(error).removeprefix(f"operator {index} ({code.op}): ")
            return self.opaque(index, code, table, inputs, outputs, reason)

    def call(self, index: int, op: str, table: Any, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> Node:
        """An operator that runs a subgraph, with what that computes. Raises UnsupportedError, ModelError."""
        numbers = called_subgraphs_of(op, table)
        if ABSENT in (*inputs, *outputs) or not all(0 <= number < self.file.subgraph_count for number in numbers):
            shown = " and ".join(map(str, numbers))
            raise ModelError(f"it runs subgraph {shown} of {self.file.subgraph_count}, or lacks an input or output")
        given = tuple(map(self.known, inputs))

        def reader_of(called: int) -> GraphReader:
            return GraphReader(self.file.data, called, self.bodies)

        if op == LOOP:
            found = self.bodies.unroll(numbers[0], numbers[1], given, reader_of)
        else:
            found = self.bodies.read(numbers[0], given, reader_of)
        if len(found.outputs) != len(outputs):
            raise ModelError(f"{len(outputs)} outputs for {len(found.outputs)} of subgraph {numbers[-1]}")
        for i, inner in zip(outputs, found.outputs, strict=True):
            check_alike(self.tensors[i], inner)
            if self.tensors[i].shape != inner.shape or self.tensors.is_open(i):
                self.tensors.reshape(i, inner.shape)
            if self.tensors[i].unusable:
                raise UnsupportedError(self.tensors[i].unusable)
        constants = [self.tensors.add(replace(t, index=self.next_constant + k)) for k, t in enumerate(found.constants)]
        self.next_constant += len(constants)
        return Node(op, (*inputs, *constants), outputs, found.body, index)

    def known(self, index: int) -> Tensor:
        """A tensor, with its value where operators compute it from constants and shapes."""
        return self.values.get(index, self.tensors[index])

    def node_of(
        self, index: int, op: str, rule: FileForm, table: Any, inputs: tuple[int, ...], outputs: tuple[int, ...]
    ) -> Node:
        """The node that an op's rule makes of an operator. Raises UnsupportedError, ModelError if it does not fit."""
        (fewest, most), (fewest_out, most_out) = rule.count, rule.outputs
        if not fewest <= len(inputs) <= most or ABSENT in inputs[:fewest]:
            raise ModelError(f"operator {index} ({op}): {len(inputs)} inputs, from {fewest} to {most} are possible")
        if not fewest_out <= len(outputs) <= most_out or ABSENT in outputs:
            wanted = f"from {fewest_out} to {most_out}" if most_out > fewest_out else f"{most_out}"
            raise ModelError(f"operator {index} ({op}): {len(outputs)} outputs instead of {wanted}")
        operator = self.operator(op, index, table, inputs, outputs)
        folds = (
            bool(inputs)
            and all(i == ABSENT or self.values.get(i, self.tensors[i]).is_constant for i in inputs)
            and can_fold(op)
        )
        positions = range(len(inputs)) if rule.data is None else rule.data
        data = tuple(inputs[i] if i < len(inputs) else ABSENT for i in positions)
        for tensor in (*operator.inputs, *operator.outputs):
            if tensor is not None and tensor.unusable and tensor.shape != OPEN:
                operator.unsupported(tensor.unusable)
        kept = {index for index in inputs if index != ABSENT and self.tensors[index].is_variable}
        if others := kept - {data[position] for position in rule.variables if position < len(data)}:
            operator.unsupported(f"tensor {min(others)} is a variable, which it does not keep")
        try:
            attributes = self.attributes(operator, rule)
        finally:  # types come first among the reasons, but shapes are inferred for whichever
            if not folds:
                self.verify_types(operator, rule, data, outputs)
        if rule.keeps_type:
            self.verify_one_type(operator, (*(data[:1] if rule.first_dtypes else data), *outputs))
        if op in (VAR_HANDLE, CALL_ONCE):
            attributes = self.initialized(operator, attributes)
        node = Node(op, data, outputs, attributes, index)
        if folds or OPS[op].role == "folded":
            self.keep_value(node)
        return node

    def initialized(self, operator: Operator, attributes: Attributes) -> Attributes:
        """What a variable holds at first is in the subgraph that CALL_ONCE runs, which is not the graph's."""
        if self.initial is None:
            self.initial = initial_values(self.file)
        if self.initial.why_not:
            operator.unsupported(self.initial.why_not)
        return with_initial(attributes, self.initial.values, self.initial.is_told)

    def attributes(self, operator: Operator, rule: FileForm) -> Attributes:
        """What a rule makes of an operator, whose outputs get the shapes that its inputs give them."""
        try:
            return rule.parse(operator)
        except ShapeError as error:
            for tensor, shape in zip(operator.outputs, error.shapes, strict=True):
                self.tensors.reshape(tensor.index, shape)
        return rule.parse(replace(operator, outputs=tuple(self.tensors[tensor.index] for tensor in operator.outputs)))

    def verify_types(self, operator: Operator, rule: FileForm, data: tuple[int, ...], outputs: tuple[int, ...]) -> None:
        """UnsupportedError unless each tensor has one of the types that the rule takes, or bytes that have a form."""
        first = [(i, rule.first_dtypes or rule.dtypes) for i in data[:1]]
        typed = [*first, *((i, rule.dtypes) for i in data[1:] if i != ABSENT)]
        tensors = [(self.tensors[i], dtypes) for i, dtypes in [*typed, *((i, rule.out_dtypes) for i in outputs)]]
        in_steps = has_form(operator.op, (tensor for tensor, _ in tensors))
        for tensor, dtypes in tensors:
            if not dtypes or tensor.dtype in dtypes or (in_steps and takes_type(tensor)):
                continue
            only = " or ".join(dtypes)
            operator.unsupported(f"tensor {tensor.index} is {tensor.dtype}, only {only} is supported")

    def verify_one_type(self, operator: Operator, tensors: tuple[int, ...]) -> None:
        """ModelError unless all of the tensors have the same type."""
        found = sorted({self.tensors[i].dtype for i in tensors})
        if len(found) > 1:
            operator.damaged(f"moves values between tensors of {' and '.join(found)}")

    def keep_value(self, node: Node) -> None:
        """Compute what is known before a run and may be a size, axes or the like of a later operator."""
        out = self.tensors[node.outputs[0]]
        if len(node.outputs) > 1 or math.prod(out.shape) > _MOST_KEPT.get(out.dtype, 0):
            return
        known = [self.values.get(i, self.tensors[i]) for i in node.inputs if i != ABSENT]
        with contextlib.suppress(ValueError):
            self.values[out.index] = replace(out, data=fold_value(node, known, out))

    def operator(self, op: str, index: int, table: Any, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> Operator:
        """The operator with its tensors and where its options are."""
        resolved = tuple(None if i == ABSENT else self.values.get(i, self.tensors[i]) for i in inputs)
        written, custom = tuple(map(self.output, outputs)), read_custom_options(self.file, table)
        options = table.BuiltinOptions()
        if options is None:
            return Operator(op, index, resolved, written, custom_options=custom)
        kind = OPTIONS_CLASSES.get(table.BuiltinOptionsType(), "unknown options")
        return Operator(op, index, resolved, written, kind, (options.Bytes, options.Pos), custom)

    def output(self, index: int) -> Tensor:
        """A tensor that an operator writes; whose shape the file leaves open has none that a rule could expect."""
        return replace(self.tensors[index], shape=OPEN) if self.tensors.is_open(index) else self.tensors[index]

    def opaque(
        self, index: int, code: "_Code", table: Any, inputs: tuple[int, ...], outputs: tuple[int, ...], reason: str
    ) -> Node:
        """The operator with all that the file says of it; what cannot be verified makes the graph keep the file."""
        options: Options = ("", ())
        custom = b""
        try:
            options = read_options(self.file, table)
            custom = read_custom_options(self.file, table)
            if code.builtin not in BUILTINS:
                raise UnsupportedError(f"builtin {code.builtin}")
            if ABSENT in outputs:
                raise UnsupportedError("an output is left out")
        except UnsupportedError as error:
            self.unwritable.add(f"operator {index} ({code.op}): {error}")
        outputs = tuple(i for i in outputs if i != ABSENT)
        attributes = Opaque(reason, code.builtin, code.version, code.custom, *options, custom)
        for i in (*inputs, *outputs):
            if i != ABSENT:
                self.tensors[i]
            if i in self.tensors.unpacked:
                self.unwritable.add(f"operator {index} ({code.op}): tensor {i} is packed")
        return Node(code.op, inputs, outputs, attributes, index)

    def code(self, index: int, code_index: int) -> "_Code":
        """What an operator is; each code is read once."""
        if code_index not in self.codes:
            self.codes[code_index] = self.read_code(index, code_index)
        return self.codes[code_index]

    def read_code(self, index: int, code_index: int) -> "_Code":
        count = self.file.model.OperatorCodesLength()
        if not 0 <= code_index < count:
            raise ModelError(f"operator {index}: operator code {code_index} of {count}")
        table = self.file.model.OperatorCodes(code_index)
        builtin, version = max(table.BuiltinCode(), table.DeprecatedBuiltinCode()), table.Version()
        if builtin != CUSTOM:
            return _Code(BUILTINS.get(builtin, f"unknown builtin {builtin}"), builtin, version)
        custom = table.CustomCode() or b""
        if len(custom) > MAX_CUSTOM_CODE:
            self.unwritable.add(f"operator {index}: a custom op with a name of {len(custom)} bytes")
        return _Code(printable_name(custom) or "CUSTOM without a name", builtin, version, custom[:MAX_CUSTOM_CODE])


@dataclass(frozen=True)
class _Code:
    """What an operator is: TensorFlow Lite's name of a builtin, or a custom op's own."""

    op: str
    builtin: int
    version: int
    custom: bytes = b""

    @property
    def is_custom(self) -> bool:
        return self.builtin == CUSTOM


BUILTINS = names_of(tflite.BuiltinOperator)
BUILTIN_NAMES = frozenset(BUILTINS.values())
