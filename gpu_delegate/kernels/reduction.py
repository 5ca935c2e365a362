"""GLSL of reductions: nodes on 1x1xC tensors go in, steps that one work-group runs in shared memory come out.

These are squeeze-and-excite blocks, a mean over a map, two small matrix products, their activations, and the ends of
classifiers, which reduce channels. The same GLSL serves as a dispatch of its own and as the prologue of a pixel kernel,
in which every work-group repeats it.
"""

import math

from ..code.vocabulary import AcrossLanes, Name, Splat
from ..model.graph import Node
from ..model.layout import shape_of
from ..model.packing import Blob, bias_of, convolution_blocks
from ..model.rewrite import float_data
from ..ops.nodes import (
    constants_of,
    expression,
    has_role,
    is_channel_reduction,
    is_elementwise,
    needs_mask,
)
from ..ops.reduce import Reducer, fold_of, scaled
from ..plan.vector_work import UNROLL, VectorWork
from ..targets.glsl.print_glsl import glsl, lines


def fold_into(fold: Reducer, *values: str) -> str:
    """The statement that folds values into the variable that a fold is named after, as GLSL."""
    return "".join(lines([fold.into(Name(fold.name, "vec4"), *(Name(value, "vec4") for value in values))], 0))


class ReductionEmitter:
    """Steps in order; arrays in shared memory are named g0, g1, ... in the order of the nodes."""

    def __init__(self, work: VectorWork, inputs: dict[int, str], blob: Blob) -> None:
        self.work = work
        self.graph = work.graph
        self.threads = work.threads
        self.inputs = inputs
        self.blob = blob
        outputs = [node.outputs[0] for node in work.nodes]
        self.arrays = {tensor: f"g{k}" for k, tensor in enumerate(outputs)}
        self.lines: list[str] = []
        self.shared = [f"shared vec4 {self.arrays[tensor]}[{work.shape(tensor).slices}];" for tensor in outputs]
        if work.has_sums:
            self.shared.append(f"shared vec4 partial_sums[{work.threads}];")

    def emit(self) -> None:
        """All nodes; the values of each are there for all threads behind it."""
        for node in self.work.nodes:
            self._node(node)
            self._line("SYNC();")

    def _line(self, text: str) -> None:
        self.lines.append("    " + text)

    def _node(self, node: Node) -> None:
        if is_channel_reduction(self.graph, node):
            self._channels(node)
        elif has_role(node, "reduction"):
            self._pixels(node)
        elif is_elementwise(node):
            self._elementwise(node)
        else:
            self._matrix(node)

    def _value(self, tensor: int, at: str, slices: int) -> str:
        """Slice `at` of a vector, or its one channel broadcast if `slices` is not 0."""
        data = self.graph.tensors[tensor]
        channels = shape_of(data).channels
        index = "0" if channels == 1 and slices > 0 else at
        if tensor in self.arrays:
            text = f"{self.arrays[tensor]}[{index}]"
        elif data.is_constant:
            text = f"WEIGHT({self.blob.vector(float_data(data))} + {index})"
        else:
            text = f"READ({self.inputs[tensor]}, {index})"
        return text + ".xxxx" if channels == 1 and slices > 0 else text

    def _pixels(self, node: Node) -> None:
        """Each thread adds every n-th pixel of one slice; one thread per slice adds those sums."""
        fold = fold_of(node)
        name, neutral = fold.name, glsl(Splat(fold.neutral))
        shape = shape_of(self.graph.tensors[node.inputs[0]])
        target = self.arrays[node.outputs[0]]
        if shape.is_vector:  # one pixel, which may be in shared memory itself
            self._each(shape.slices, [f"{target}[o] = {self._value(node.inputs[0], 'o', 0)};"])
            return
        source = self.inputs[node.inputs[0]]
        if shape.slices > self.threads:
            self._each(shape.slices, self._whole_slice(node, source, shape.pixels, target))
            return
        together = min(shape.slices, self.threads)
        chunks = self.threads // together
        for text in (
            f"if (thread < {together * chunks}) {{",
            f"    int base = (0 + thread / {chunks}) * {shape.pixels};",
            f"    int i = thread % {chunks};",
            f"    vec4 {name} = {neutral};",
            f"    for (; i < {shape.pixels - (UNROLL - 1) * chunks}; i += {UNROLL * chunks})",
            "        " + fold_into(fold, *(f"READ({source}, base + i + {k * chunks})" for k in range(UNROLL))),
            f"    for (; i < {shape.pixels}; i += {chunks}) {fold_into(fold, f'READ({source}, base + i)')}",
            f"    partial_sums[thread] = {name};",
            "}",
            "SYNC();",
            f"if (thread < {together}) {{",
            f"    vec4 {name} = {neutral};",
            f"    for (int i = 0; i < {chunks}; ++i) {fold_into(fold, f'partial_sums[thread * {chunks} + i]')}",
            f"    {target}[0 + thread] = {glsl(scaled(self.graph, node, Name(name, 'vec4')))};",
            "}",
        ):
            self._line(text)

    def _whole_slice(self, node: Node, source: str, pixels: int, target: str) -> list[str]:
        """What one thread does for slice o of a reduction of pixels, where there are more slices than threads."""
        fold = fold_of(node)
        several = fold_into(fold, *(f"READ({source}, i + {k})" for k in range(UNROLL)))
        text = [
            f"int i = o * {pixels}, end = i + {pixels};",
            f"vec4 {fold.name} = {glsl(Splat(fold.neutral))};",
            f"for (; i <= end - {UNROLL}; i += {UNROLL}) {several}",
            f"for (; i < end; ++i) {fold_into(fold, f'READ({source}, i)')}",
        ]
        return [*text, f"{target}[o] = {glsl(scaled(self.graph, node, Name(fold.name, 'vec4')))};"]

    def _channels(self, node: Node) -> None:
        """Some threads fold slices, each as many as there are such threads; one folds what they have, and its lanes."""
        shape, fold = shape_of(self.graph.tensors[node.inputs[0]]), fold_of(node)
        name, neutral = fold.name, glsl(Splat(fold.neutral))
        together = min(self.threads, math.isqrt(shape.slices - 1) + 1)
        value = self._value(node.inputs[0], "i", 0)
        if shape.channels % 4:
            value = f"mix({neutral}, {value}, lessThan(ivec4(0, 1, 2, 3), ivec4({shape.channels} - 4 * i)))"
        one = glsl(scaled(self.graph, node, AcrossLanes(fold.operation, Name(name, "vec4"))))
        for text in (
            f"if (thread < {together}) {{",
            f"    vec4 {name} = {neutral};",
            f"    for (int i = thread; i < {shape.slices}; i += {together}) {fold_into(fold, value)}",
            f"    partial_sums[thread] = {name};",
            "}",
            "SYNC();",
            "if (thread == 0) {",
            f"    vec4 {name} = {neutral};",
            f"    for (int i = 0; i < {together}; ++i) {fold_into(fold, 'partial_sums[i]')}",
            f"    {self.arrays[node.outputs[0]]}[0] = vec4({one}, 0.0, 0.0, 0.0);",
            "}",
        ):
            self._line(text)

    def _each(self, slices: int, body: list[str]) -> None:
        if slices <= self.threads:
            self._line(f"if (thread < {slices}) {{")
            self._line("    int o = thread;")
        else:
            self._line(f"for (int o = thread; o < {slices}; o += {self.threads}) {{")
        for text in body:
            self._line("    " + text)
        self._line("}")

    def _elementwise(self, node: Node) -> None:
        shape = shape_of(self.graph.tensors[node.outputs[0]])
        repeat = shape.channels if shape.channels > 1 else 0
        text = expression(node, [*(self._value(i, "o", repeat) for i in node.inputs), *self._constants(node)])
        if needs_mask(node) and shape.channels % 4:
            text = f"keep({text}, {shape.channels} - 4 * o)"
        self._each(shape.slices, [f"{self.arrays[node.outputs[0]]}[o] = {text};"])

    def _constants(self, node: Node) -> list[str]:
        """Numbers of a node's attributes, as weights."""
        return [f"WEIGHT({self.blob.add(texel)})" for texel in constants_of(node)]

    def _matrix(self, node: Node) -> None:
        """A 1x1 convolution: one thread per output slice, weights such that adjacent threads read adjacent texels."""
        blocks = convolution_blocks(float_data(self.graph.tensors[node.inputs[1]]))[:, 0]  # (S, N, 4 in, 4 out)
        slices, outputs = blocks.shape[:2]
        weights = self.blob.add(blocks.transpose(0, 2, 1, 3))  # (S, 4 in, N, 4 out)
        bias = self.blob.add(bias_of(self.graph, node))
        terms = " + ".join(
            f"v.{lane} * WEIGHT({weights} + (4 * i + {k}) * {outputs} + o)" for k, lane in enumerate("xyzw")
        )
        self._each(
            outputs,
            [
                f"vec4 sum = WEIGHT({bias} + o);",
                f"for (int i = 0; i < {slices}; ++i) {{",
                f"    vec4 v = {self._value(node.inputs[0], 'i', 0)};",
                f"    sum += {terms};",
                "}",
                f"{self.arrays[node.outputs[0]]}[o] = sum;",
            ],
        )
