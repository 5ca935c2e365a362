"""The pass that turns quantized tensors into whole numbers in float32, rounded as TensorFlow Lite rounds them.

A quantized tensor becomes steps, whole numbers q - zero point. Zeros stay zeros (padding, unused lanes), and sums of
products of steps are exact in float32 below 2^24, in whichever order they are added. REQUANTIZE makes steps of the
output of them, as TensorFlow Lite's reference kernels do. FORMS has a function for each op; what only moves values, all
in one scale, stays as it is. Activations of 16 bits have sums beyond 2^24, and forms of their own: SHORT_FORMS.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import NoReturn

from ..model.graph import Graph, Tensor
from ..model.quantization import is_quantized, steps_of
from ..model.rewrite import Outcome, Rewriter
from .quantized_node import Form, QuantizedNode
from .shorts_arithmetic import SHORT_ARITHMETIC_FORMS
from .shorts_contractions import SHORT_CONTRACTION_FORMS
from .shorts_filters import SHORT_FILTER_FORMS
from .shorts_functions import SHORT_FUNCTION_FORMS
from .shorts_softmax import SHORT_SOFTMAX_FORMS
from .steps_arithmetic import ARITHMETIC_FORMS
from .steps_contractions import CONTRACTION_FORMS
from .steps_functions import FUNCTION_FORMS
from .steps_moves import MOVE_FORMS, SHORT_MOVE_FORMS
from .steps_recurrent import RECURRENT_FORMS
from .steps_reductions import REDUCTION_FORMS

FORMS: Mapping[str, Form] = MappingProxyType(
    {
        **ARITHMETIC_FORMS,
        **CONTRACTION_FORMS,
        **FUNCTION_FORMS,
        **MOVE_FORMS,
        **RECURRENT_FORMS,
        **REDUCTION_FORMS,
    }
)

SHORT_FORMS: Mapping[str, Form] = MappingProxyType(
    {
        **SHORT_ARITHMETIC_FORMS,
        **SHORT_CONTRACTION_FORMS,
        **SHORT_FILTER_FORMS,
        **SHORT_FUNCTION_FORMS,
        **SHORT_MOVE_FORMS,
        **SHORT_SOFTMAX_FORMS,
    }
)


def has_form(op: str, tensors: Iterable[Tensor]) -> bool:
    """Whether an op with such tensors is computed in steps."""
    dtypes = {tensor.dtype for tensor in tensors if is_quantized(tensor)}
    return bool(dtypes) and op in (SHORT_FORMS if "int16" in dtypes else FORMS)


def quantized_to_steps(graph: Graph) -> tuple[Graph, Outcome]:
    """int8, uint8 and int16 in a scale -> steps from the zero point in float32, and REQUANTIZE behind what computes."""
    edit = Rewriter(graph)
    quantized = [tensor for tensor in graph.tensors.values() if is_quantized(tensor)]
    if not quantized:
        return graph, Outcome(0)
    for node in graph.nodes:
        form = QuantizedNode(edit, graph, node)
        if form.has_bytes:
            form.verify_rules()
            forms = SHORT_FORMS if form.has_shorts else FORMS
            edit.replace(node, *forms.get(node.op, _without_form)(form))
    for tensor in quantized:
        if not tensor.is_constant:
            edit.set_tensor(replace(tensor, dtype="float32", quantization=None, steps=steps_of(tensor)))
    return edit.finish()


def _without_form(node: QuantizedNode) -> NoReturn:
    node.refuse("16-bit integers" if node.has_shorts else "8-bit integers")
