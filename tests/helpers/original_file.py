"""Runs a .tflite file's own bytes in TensorFlow Lite, as the oracle.

For files that the tests made themselves or know: TensorFlow Lite trusts a file blindly. Only MediaPipe's custom op is
replaced, in front of the unchanged file, because not every runtime has it.
"""

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import flatbuffers
import numpy as np
import numpy.typing as npt
import tflite

from texelflow.gpu_delegate.cpu.reference import load_interpreter_module

Array = npt.NDArray[Any]

CUSTOM_TRANSPOSE = b"Convolution2DTransposeBias"
TRANSPOSE_WITH_BIAS_VERSION = 3
ALIGNMENT = 16  # of constants in a .tflite file


def run_original(data: bytes, inputs: Sequence[Array], tensors: Iterable[int] = ()) -> list[Array]:
    """The outputs of the original file in one thread, or of TensorFlow Lite's own kernels, not XNNPACK's, the tensors
    with these indices."""
    module, options = load_interpreter_module(), dict[str, Any](num_threads=1)
    wanted = tuple(tensors)
    if wanted:
        options["experimental_op_resolver_type"] = module.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = module.Interpreter(model_content=OriginalFile(data).rewritten(bool(wanted)), **options)
    interpreter.allocate_tensors()
    for detail, values in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], values)
    interpreter.invoke()
    outputs = tflite.Model.GetRootAs(data, 0).Subgraphs(0).OutputsAsNumpy()
    return [np.array(interpreter.get_tensor(int(index))) for index in wanted or outputs]


class OriginalFile:
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

    def root(self, codes: list[int], operators: list[int], outputs: int, add: Callable[[], None] | None = None) -> int:
        """The model's table: new vectors where something changed, the old file's where nothing did, what `add` adds."""
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
        if add:
            add()
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
