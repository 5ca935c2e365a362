"""GLSL of vector nodes for GPUs: a VectorWork goes in, steps in which all threads of a work-group take part come out.

Threads share the input slices of a matrix, so that adjacent ones read adjacent texels of its weights, and wait for each
other only where one reads what another one has written.
"""

import numpy as np

from ..code.vocabulary import Name, Splat
from ..model.graph import Graph, Node
from ..model.layout import ceil_div
from ..model.packing import Blob, Float32Array, bias_of, convolution_blocks
from ..model.rewrite import float_data
from ..ops.nodes import expression, is_elementwise, needs_mask
from ..ops.reduce import fold_of, scaled
from ..plan.vector_work import UNROLL, VectorWork
from ..targets.glsl.print_glsl import ONE, glsl
from .reduction import ReductionEmitter, fold_into

# Turns of a product's loop. Written out by compilers, more take registers: 4 spill on an Adreno 618, 80 instead of 40
# on an RDNA 2; fewer that they may not write out take a tenth more instructions on Intel's GPUs, a third on AMD's.
_MOST_UNROLLED = 8


class SharedReductionEmitter(ReductionEmitter):
    """Slice o of a vector is written by thread o, counted round and round, which reads it back without waiting."""

    def __init__(self, work: VectorWork, inputs: dict[int, str], blob: Blob) -> None:
        super().__init__(work, inputs, blob)
        self._unseen: set[int] = set()  # vectors that only the thread which wrote a slice can read there
        self._sums_are_read = False  # since threads last waited: nothing may be written over them

    def emit(self) -> None:
        """All nodes; their values are there for all threads at the end."""
        for node in self.work.nodes:
            across = not is_elementwise(node) or any(self._is_repeated(i, node) for i in node.inputs)
            if across and (self._unseen & set(node.inputs) or self._sums_are_read):
                self._wait()
            self._node(node)
            self._unseen.add(node.outputs[0])
        if self.work.nodes:
            self._wait()

    def _is_repeated(self, tensor: int, node: Node) -> bool:
        """Whether an elementwise node reads another slice of a vector than it writes, or one that is narrower."""
        out = node.outputs[0]
        return self.work.slices(tensor) != self.work.slices(out)

    def _wait(self) -> None:
        self._line("SYNC();")
        self._unseen.clear()
        self._sums_are_read = False

    def _lines(self, *texts: str) -> None:
        for text in texts:
            self._line(text)

    def _first(self, tensor: int) -> str:
        """The first slice of a vector that the work-group computes, as a term to add."""
        return f"{self.work.range.first} + " if tensor in self.work.narrow else ""

    # Pixels -------------------------------------------------------------------------------------------------------

    def _pixels(self, node: Node) -> None:
        """Some threads for each slice add its pixels, then one adds what they have."""
        fold, target = fold_of(node), self.arrays[node.outputs[0]]
        (source,), slices = node.inputs, self.work.shape(node.outputs[0]).slices
        if self.work.shape(source).is_vector:
            self._each(slices, [f"{target}[o] = {self._value(source, 'o', 0)};"])
            return
        pixels, name = self.work.shape(source).pixels, fold.name
        if slices > self.threads:
            self._each(slices, self._whole_slice(node, self.inputs[source], pixels, target))
            return
        chunks = min(self.threads // slices, ceil_div(pixels, UNROLL))
        self._lines(
            f"if (thread < {slices * chunks}) {{",
            f"    int i = (0 + thread / {chunks}) * {pixels} + thread % {chunks};",
            f"    vec4 {name} = {glsl(Splat(fold.neutral))};",
            *(f"    {line}" for line in self._loads_of(node, source, pixels, chunks)),
            f"    partial_sums[thread] = {name};",
            "}",
        )
        self._wait()
        self._lines(
            f"if (thread < {slices}) {{",
            f"    vec4 {name} = partial_sums[thread * {chunks}];",
            f"    for (int i = 1; i < {chunks}; ++i) {fold_into(fold, f'partial_sums[thread * {chunks} + i]')}",
            f"    {target}[0 + thread] = {glsl(scaled(self.graph, node, Name(name, 'vec4')))};",
            "}",
        )
        self._sums_are_read = True

    def _loads_of(self, node: Node, source: int, pixels: int, chunks: int) -> list[str]:
        """Every `chunks`-th texel from i on, several at a time; loops whose turns compilers know."""
        fold, texels = fold_of(node), self.inputs[source]
        whole, rest = divmod(pixels, chunks)
        rounds, left = divmod(whole, UNROLL)

        def several(count: int) -> str:
            return fold_into(fold, *(f"READ({texels}, i + {k * chunks})" for k in range(count)))

        lines = []
        if rounds:
            lines += [
                f"for (int k = 0; k < {rounds}; ++k) {{",
                f"    {several(UNROLL)}",
                f"    i += {UNROLL * chunks};",
                "}",
            ]
        if left:
            lines.append(several(left))
        if rest:
            one = f"READ({texels}, i + {left * chunks})"
            lines.append(f"if (thread % {chunks} < {rest}) {fold_into(fold, one)}")
        return lines

    def _channels(self, node: Node) -> None:
        super()._channels(node)
        self._sums_are_read = True

    # Values -------------------------------------------------------------------------------------------------------

    def _elementwise(self, node: Node) -> None:
        out = node.outputs[0]
        channels, at = self.work.shape(out).channels, f"{self._first(out)}o"
        operands = [self._value(i, at, channels if channels > 1 else 0) for i in node.inputs]
        text = expression(node, [*operands, *self._constants(node)])
        if needs_mask(node) and channels % 4:
            text = f"keep({text}, {channels} - 4 * ({at}))"
        self._each(self.work.slices(out), [f"{self.arrays[out]}[{at}] = {text};"])

    def _matrix(self, node: Node) -> None:
        """A 1x1 convolution: each thread multiplies some input slices for one output slice, then one adds these."""
        out, (source, *_) = node.outputs[0], node.inputs
        parts, turns = self.work.parts(node)
        outputs, all_outputs = self.work.slices(out), self.work.shape(out).slices
        weights = self.blob.add(_in_turns(self.graph, node, parts, turns))
        bias = self.blob.add(bias_of(self.graph, node))
        target, first = f"{self.arrays[out]}[{self._first(out)}o]", self._first(out)
        slices = self.work.shape(source).slices
        at = f"min(k * {parts} + part, {slices - 1})" if turns * parts > slices else f"k * {parts} + part"
        place = f"(4 * k * {parts} + part) * {all_outputs} + {first}o"
        terms = " + ".join(
            f"v.{lane} * WEIGHT({weights} + {place} + {n * parts * all_outputs})" for n, lane in enumerate("xyzw")
        )
        limit = f"{turns} * {ONE}" if turns > _MOST_UNROLLED else f"{turns}"
        products = [
            f"for (int k = 0; k < {limit}; ++k) {{",
            f"    vec4 v = {self._value(source, at, 0)};",
            f"    sum += {terms};",
            "}",
        ]
        if parts == 1:
            start = ["int part = 0;", f"vec4 sum = WEIGHT({bias} + {first}o);"]
            self._each(outputs, [*start, *products, f"{target} = sum;"])
            return
        self._lines(
            f"if (thread < {parts * outputs}) {{",
            f"    int o = thread % {outputs}, part = thread / {outputs};",
            "    vec4 sum = vec4(0.0);",
            *(f"    {line}" for line in products),
            "    partial_sums[thread] = sum;",
            "}",
        )
        self._wait()
        self._each(
            outputs,
            [
                f"vec4 sum = WEIGHT({bias} + {first}o);",
                f"for (int part = 0; part < {parts}; ++part) sum += partial_sums[part * {outputs} + o];",
                f"{target} = sum;",
            ],
        )
        self._sums_are_read = True


def _in_turns(graph: Graph, node: Node, parts: int, turns: int) -> Float32Array:
    """The weights of a 1x1 convolution as (turns, 4 in, parts, N, 4 out): what is multiplied at once lies together."""
    blocks = convolution_blocks(float_data(graph.tensors[node.inputs[1]]))[:, 0]  # (S, N, 4 in, 4 out)
    padded = np.pad(blocks, [(0, parts * turns - len(blocks)), (0, 0), (0, 0), (0, 0)])
    return padded.reshape(turns, parts, *blocks.shape[1:]).transpose(0, 3, 1, 2, 4)
