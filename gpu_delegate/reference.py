"""A model and its inputs go in, its outputs come out: TensorFlow Lite itself on the CPU, the fallback and the oracle.

MediaPipe's custom op is rewritten to the builtin that computes the same, in a copy of the model, so that the oracle
shares no code with what it judges.
"""

import contextlib
import importlib
import os
import struct
from collections.abc import Iterator, Sequence
from typing import Any

import flatbuffers
import numpy as np
import numpy.typing as npt
import tflite

from gpu_delegate.errors import DeviceError, ModelError, UnsupportedError, UsageError
from gpu_delegate.reader import printable

Array = npt.NDArray[Any]

CUSTOM_TRANSPOSE = b"Convolution2DTransposeBias"
TRANSPOSE_WITH_BIAS_VERSION = 3
ALIGNMENT = 16  # of constants in a .tflite file
MOST_THREADS = 4  # more gain nothing on networks of this size
SPARED_CPUS = 1  # its threads wait for each other in loops: if one finds no CPU free, 3 ms become 500


def load_interpreter_module() -> Any:
    """The module with TensorFlow Lite's Interpreter: tflite-runtime's, else ai-edge-litert's. Raises DeviceError."""
    for name in ("tflite_runtime.interpreter", "ai_edge_litert.interpreter"):
        with contextlib.suppress(ImportError):
            return importlib.import_module(name)
    raise DeviceError("TensorFlow Lite is not installed; `pip install ai-edge-litert` adds the CPU path")


class Reference:
    """One model in TensorFlow Lite's interpreter on the CPU. Not for use from several threads at once."""

    def __init__(self, data: bytes, threads: int | None = None, keep_all_tensors: bool = False) -> None:
        """Loads the bytes of a .tflite file; ones from a stranger should have passed read_model() before.

        With keep_all_tensors no delegate hides the inner tensors and tensor() gives each of them; that is slower.
        Raises ModelError where TensorFlow Lite refuses the model, DeviceError where there is no TensorFlow Lite.
        """
        module = load_interpreter_module()
        options: dict[str, Any] = {"num_threads": threads or max(1, min(MOST_THREADS, _usable_cpus() - SPARED_CPUS))}
        if keep_all_tensors:
            options["experimental_op_resolver_type"] = module.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        model = _rewrite(data, every_output=keep_all_tensors)
        with _refusals_in_one_line():
            self._interpreter = module.Interpreter(model_content=model, **options)
            self._interpreter.allocate_tensors()
            inputs = self._interpreter.get_input_details()
            outputs = self._interpreter.get_output_details()[: _count_outputs(data)]
        self._keeps_all = keep_all_tensors
        self.input_shapes = tuple(tuple(int(size) for size in detail["shape"]) for detail in inputs)
        self.output_shapes = tuple(tuple(int(size) for size in detail["shape"]) for detail in outputs)
        # Views of the interpreter's own memory: made anew for each use, because one that lives would forbid invoke().
        self._inputs = tuple((detail["index"], self._interpreter.tensor(detail["index"])) for detail in inputs)
        self._outputs = tuple(self._interpreter.tensor(detail["index"]) for detail in outputs)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of the first input."""
        return self.input_shapes[0]

    def run(self, inputs: Sequence[Array] | Array) -> tuple[Array, ...]:
        """Output tensors, as copies, for one input tensor or one per input. Raises UsageError for another shape."""
        arrays = (inputs,) if isinstance(inputs, np.ndarray) else tuple(inputs)
        shapes = tuple(array.shape for array in arrays)
        if shapes != self.input_shapes:
            raise UsageError(f"the model takes inputs of shapes {self.input_shapes}, not {shapes}")
        for (index, view), array in zip(self._inputs, arrays, strict=True):
            if array.ndim:
                np.copyto(view(), array)
            else:  # what the interpreter gives of a scalar is no view
                self._interpreter.set_tensor(index, array.astype(view().dtype))
        with _refusals_in_one_line():
            self._interpreter.invoke()
        return tuple(view().copy() for view in self._outputs)

    def tensor(self, index: int) -> Array:
        """A copy of any tensor after run(), by its index in the original file; needs keep_all_tensors."""
        if not self._keeps_all:
            raise UsageError("inner tensors are kept only by Reference(..., keep_all_tensors=True)")
        value: Array = self._interpreter.get_tensor(index)
        return value


def rewrite_custom_ops(data: bytes) -> bytes:
    """A copy of the model in which Convolution2DTransposeBias is the builtin TRANSPOSE_CONV, version 3.

    Tensor indices stay; new ones are appended. A model without that op comes back as it is.
    Raises ModelError, UnsupportedError.
    """
    return _rewrite(data, every_output=False)


def _rewrite(data: bytes, every_output: bool) -> bytes:
    try:
        return _Rewriter(data).rewritten(every_output)
    except (struct.error, IndexError, ValueError, TypeError, AttributeError, OverflowError) as error:
        raise ModelError("the model's file is damaged or cut off, get it again") from error


@contextlib.contextmanager
def _refusals_in_one_line() -> Iterator[None]:
    """TensorFlow Lite's own errors as a ModelError."""
    try:
        yield
    except (ValueError, RuntimeError) as error:
        reason = printable(" ".join(str(error).split()), 200)
        raise ModelError(f"TensorFlow Lite cannot run this model on the CPU: {reason}") from error


def _count_outputs(data: bytes) -> int:
    return int(tflite.Model.GetRootAs(data, 0).Subgraphs(0).OutputsLength())


def _usable_cpus() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


class _Rewriter:
    """Puts new tables in front of the unchanged file and lets them point into it.

    Offsets in a flatbuffer only point forward, so what changes, and what leads there from the root, is written anew in
    front. The builder counts positions backwards from the end of what it makes, where the old file begins: position p
    of the old file is -p to it.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.model = tflite.Model.GetRootAs(data, 0)
        self.subgraph = self.model.Subgraphs(0)
        self.builder = flatbuffers.Builder(1024)
        self.builder.minalign = ALIGNMENT
        self.tensors = [-self.subgraph.Tensors(i)._tab.Pos for i in range(self.subgraph.TensorsLength())]
        self.buffers = [-self.model.Buffers(i)._tab.Pos for i in range(self.model.BuffersLength())]

    def rewritten(self, every_output: bool) -> bytes:
        """The new file; with every_output what any operator writes becomes an output, behind the model's own.

        TensorFlow Lite 2.14 computes in place even where it is asked to preserve all tensors; outputs it leaves alone.
        """
        names = [self.model.OperatorCodes(i).CustomCode() for i in range(self.model.OperatorCodesLength())]
        if CUSTOM_TRANSPOSE not in names and not every_output:
            return self.data
        if any(self.model.Buffers(i).Offset() > 1 for i in range(self.model.BuffersLength())):
            raise UnsupportedError("constants after the flatbuffer in a model with MediaPipe's custom op")
        codes = [
            self.transpose_code() if name == CUSTOM_TRANSPOSE else -self.model.OperatorCodes(i)._tab.Pos
            for i, name in enumerate(names)
        ]
        operators = []
        for i in range(self.subgraph.OperatorsLength()):
            operator = self.subgraph.Operators(i)
            custom = names[operator.OpcodeIndex()] == CUSTOM_TRANSPOSE
            operators.append(self.transpose_operator(operator) if custom else -operator._tab.Pos)
        outputs = self.every_output() if every_output else _old(self.subgraph, slot=2)
        self.builder.Finish(self.root(codes, operators, outputs), b"TFL3")
        return bytes(self.builder.Output()) + self.data

    def every_output(self) -> int:
        """A new vector of outputs: the model's own, then every other tensor that an operator writes."""
        own = [int(i) for i in self.subgraph.OutputsAsNumpy()]
        operators = (self.subgraph.Operators(i) for i in range(self.subgraph.OperatorsLength()))
        written = dict.fromkeys(int(i) for operator in operators for i in operator.OutputsAsNumpy())
        return int(self.builder.CreateNumpyVector(np.array([*own, *(i for i in written if i not in own)], np.int32)))

    def transpose_code(self) -> int:
        tflite.OperatorCodeStart(self.builder)
        tflite.OperatorCodeAddDeprecatedBuiltinCode(self.builder, tflite.BuiltinOperator.TRANSPOSE_CONV)
        tflite.OperatorCodeAddBuiltinCode(self.builder, tflite.BuiltinOperator.TRANSPOSE_CONV)
        tflite.OperatorCodeAddVersion(self.builder, TRANSPOSE_WITH_BIAS_VERSION)
        return int(tflite.OperatorCodeEnd(self.builder))

    def transpose_operator(self, old: Any) -> int:
        """TRANSPOSE_CONV with the inputs (output shape, weights, x, bias) for the custom op's (x, weights, bias)."""
        x, weights, *bias = (int(i) for i in old.InputsAsNumpy())
        padding, stride_w, stride_h = struct.unpack_from("<3i", bytes(old.CustomOptionsAsNumpy()))
        shape = self.constant(self.subgraph.Tensors(old.Outputs(0)).ShapeAsNumpy())
        inputs = self.builder.CreateNumpyVector(np.array([shape, weights, x, *bias], np.int32))
        tflite.TransposeConvOptionsStart(self.builder)
        tflite.TransposeConvOptionsAddPadding(
            self.builder, padding - 1
        )  # the op counts from SAME = 1, the schema from 0
        tflite.TransposeConvOptionsAddStrideW(self.builder, stride_w)
        tflite.TransposeConvOptionsAddStrideH(self.builder, stride_h)
        options = tflite.TransposeConvOptionsEnd(self.builder)
        tflite.OperatorStart(self.builder)
        tflite.OperatorAddOpcodeIndex(self.builder, old.OpcodeIndex())
        tflite.OperatorAddInputs(self.builder, inputs)
        tflite.OperatorAddOutputs(self.builder, _old(old, slot=2))
        tflite.OperatorAddBuiltinOptionsType(self.builder, tflite.BuiltinOptions.TransposeConvOptions)
        tflite.OperatorAddBuiltinOptions(self.builder, options)
        return int(tflite.OperatorEnd(self.builder))

    def constant(self, values: npt.NDArray[np.int32]) -> int:
        """Index of a new constant int32 tensor of one dimension."""
        self.builder.Prep(ALIGNMENT, values.nbytes)
        stored = self.builder.CreateByteVector(values.tobytes())
        tflite.BufferStart(self.builder)
        tflite.BufferAddData(self.builder, stored)
        self.buffers.append(int(tflite.BufferEnd(self.builder)))
        shape = self.builder.CreateNumpyVector(np.array([values.size], np.int32))
        tflite.TensorStart(self.builder)
        tflite.TensorAddShape(self.builder, shape)
        tflite.TensorAddType(self.builder, tflite.TensorType.INT32)
        tflite.TensorAddBuffer(self.builder, len(self.buffers) - 1)
        self.tensors.append(int(tflite.TensorEnd(self.builder)))
        return len(self.tensors) - 1

    def root(self, codes: list[int], operators: list[int], outputs: int) -> int:
        """The model's table: new vectors where something changed, the old file's where nothing did."""
        new_tensors, new_operators = self.vector(self.tensors), self.vector(operators)
        tflite.SubGraphStart(self.builder)
        tflite.SubGraphAddTensors(self.builder, new_tensors)
        tflite.SubGraphAddInputs(self.builder, _old(self.subgraph, slot=1))
        tflite.SubGraphAddOutputs(self.builder, outputs)
        tflite.SubGraphAddOperators(self.builder, new_operators)
        subgraphs = self.vector([int(tflite.SubGraphEnd(self.builder))])
        new_codes, new_buffers = self.vector(codes), self.vector(self.buffers)
        tflite.ModelStart(self.builder)
        tflite.ModelAddVersion(self.builder, self.model.Version())
        tflite.ModelAddOperatorCodes(self.builder, new_codes)
        tflite.ModelAddSubgraphs(self.builder, subgraphs)
        tflite.ModelAddBuffers(self.builder, new_buffers)
        return int(tflite.ModelEnd(self.builder))

    def vector(self, offsets: list[int]) -> int:
        """A vector of offsets to tables, new ones or (negative) ones of the old file."""
        self.builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self.builder.PrependUOffsetTRelative(offset)
        return int(self.builder.EndVector())


def _old(table: Any, slot: int) -> int:
    """Where a field of an old table leads, as an offset for the builder."""
    tab = table._tab
    return -int(tab.Indirect(tab.Pos + tab.Offset(4 + 2 * slot)))
