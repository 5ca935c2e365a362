"""TensorFlow Lite's C structs as ctypes.

Fields and their order are those of tensorflow/lite/core/c/common.h, from TensorFlow Lite 2.12 to LiteRT 2; a struct may
end before the last field of the header where nothing behind it is used. Names of fields are the header's.
"""

import ctypes
from collections.abc import Iterable
from types import MappingProxyType

OK, ERROR = 0, 1  # TfLiteStatus
ALLOWS_DYNAMIC_TENSORS = 1  # TfLiteDelegateFlags
NO_BUFFER_HANDLE = -1
IN_FILE = 1  # TfLiteAllocationType of constants (kTfLiteMmapRo)
DYNAMIC = 4  # of a tensor whose memory an operator allocates when it runs
AFFINE_QUANTIZATION, BLOCK_QUANTIZATION = 1, 2  # TfLiteQuantizationType
SPARSE_DIMENSION = 1  # TfLiteDimensionType of compressed sparse rows

TYPES = MappingProxyType(  # TfLiteType, as NumPy names them
    {
        1: "float32",
        2: "int32",
        3: "uint8",
        4: "int64",
        6: "bool",
        7: "int16",
        8: "complex64",
        9: "int8",
        10: "float16",
        11: "float64",
    }
    | {13: "uint64", 16: "uint32", 17: "uint16"}
)
OTHER_TYPES = MappingProxyType(  # those that NumPy lacks, as the schema names them, in lower case
    {5: "string", 12: "complex128", 14: "resource", 15: "variant", 18: "int4", 19: "bfloat16"}
    | {20: "int2", 21: "uint4"}
)


class TfLiteTensor(ctypes.Structure):
    """A tensor of the runtime."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("data", ctypes.c_void_p),
        ("dims", ctypes.c_void_p),
        ("scale", ctypes.c_float),
        ("zero_point", ctypes.c_int32),
        ("allocation_type", ctypes.c_int),
        ("bytes", ctypes.c_size_t),
        ("allocation", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("delegate", ctypes.c_void_p),
        ("buffer_handle", ctypes.c_int),
        ("data_is_stale", ctypes.c_bool),
        ("is_variable", ctypes.c_bool),
        ("quantization_type", ctypes.c_int),
        ("quantization_params", ctypes.c_void_p),
        ("sparsity", ctypes.c_void_p),
        ("dims_signature", ctypes.c_void_p),
    )


class TfLiteAffineQuantization(ctypes.Structure):
    """What `quantization_params` of a tensor points to."""

    _fields_ = (("scale", ctypes.c_void_p), ("zero_point", ctypes.c_void_p), ("quantized_dimension", ctypes.c_int32))


class TfLiteBlockwiseQuantization(ctypes.Structure):
    """The same of a constant in blocks: the tensors that have scales and zero points."""

    _fields_ = tuple((name, ctypes.c_int32) for name in ("scale", "zero_point", "blocksize", "quantized_dimension"))


class TfLiteDimensionMetadata(ctypes.Structure):
    """A dimension of a sparse constant."""

    _fields_ = (
        ("format", ctypes.c_int),
        ("dense_size", ctypes.c_int),
        ("array_segments", ctypes.c_void_p),
        ("array_indices", ctypes.c_void_p),
    )


class TfLiteSparsity(ctypes.Structure):
    """Where the values of a sparse constant stand."""

    _fields_ = (
        ("traversal_order", ctypes.c_void_p),
        ("block_map", ctypes.c_void_p),
        ("dim_metadata", ctypes.c_void_p),
        ("dim_metadata_size", ctypes.c_int),
    )


class TfLiteNode(ctypes.Structure):
    """An operator of the runtime."""

    _fields_ = (
        ("inputs", ctypes.c_void_p),
        ("outputs", ctypes.c_void_p),
        ("intermediates", ctypes.c_void_p),
        ("temporaries", ctypes.c_void_p),
        ("user_data", ctypes.c_void_p),
        ("builtin_data", ctypes.c_void_p),
        ("custom_initial_data", ctypes.c_void_p),
        ("custom_initial_data_size", ctypes.c_int),
        ("delegate", ctypes.c_void_p),
        ("might_have_side_effect", ctypes.c_bool),
    )


InitFunction = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
FreeFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
NodeFunction = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(TfLiteNode))


class TfLiteRegistration(ctypes.Structure):
    """The functions of an operator; passed by value."""

    _fields_ = (
        ("init", InitFunction),
        ("free", FreeFunction),
        ("prepare", NodeFunction),
        ("invoke", NodeFunction),
        ("profiling_string", ctypes.c_void_p),
        ("builtin_code", ctypes.c_int32),
        ("custom_name", ctypes.c_char_p),
        ("version", ctypes.c_int),
        ("registration_external", ctypes.c_void_p),
        ("async_kernel", ctypes.c_void_p),
        ("inplace_operator", ctypes.c_uint64),
    )


class TfLiteContext(ctypes.Structure):
    """What the runtime offers to operators and delegates."""

    _fields_ = (
        ("tensors_size", ctypes.c_size_t),
        (
            "GetExecutionPlan",
            ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)),
        ),
        ("tensors", ctypes.POINTER(TfLiteTensor)),
        ("impl", ctypes.c_void_p),
        (
            "ResizeTensor",
            ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p),
        ),
        ("ReportError", ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)),
        ("AddTensors", ctypes.c_void_p),
        (
            "GetNodeAndRegistration",
            ctypes.CFUNCTYPE(
                ctypes.c_int,
                ctypes.c_void_p,
                ctypes.c_int,
                ctypes.POINTER(ctypes.POINTER(TfLiteNode)),
                ctypes.POINTER(ctypes.POINTER(TfLiteRegistration)),
            ),
        ),
        (
            "ReplaceNodeSubsetsWithDelegateKernels",
            ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, TfLiteRegistration, ctypes.c_void_p, ctypes.c_void_p),
        ),
        ("recommended_num_threads", ctypes.c_int),
        ("GetExternalContext", ctypes.c_void_p),
        ("SetExternalContext", ctypes.c_void_p),
        ("allow_fp32_relax_to_fp16", ctypes.c_bool),
        ("profiler", ctypes.c_void_p),
        ("AllocatePersistentBuffer", ctypes.c_void_p),
        ("AllocateBufferForEval", ctypes.c_void_p),
        ("RequestScratchBufferInArena", ctypes.c_void_p),
        ("GetScratchBuffer", ctypes.c_void_p),
        ("ResizeTensorExplicit", ctypes.c_void_p),
        (
            "PreviewDelegatePartitioning",
            ctypes.CFUNCTYPE(
                ctypes.c_int,
                ctypes.c_void_p,
                ctypes.c_void_p,
                ctypes.POINTER(ctypes.c_void_p),
                ctypes.POINTER(ctypes.c_int),
            ),
        ),
        ("GetTensor", ctypes.c_void_p),
        ("GetEvalTensor", ctypes.c_void_p),
        ("GetModelMetadata", ctypes.c_void_p),
        (
            "AcquireSubgraphContext",
            ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(ctypes.c_void_p)),
        ),
        ("ReleaseSubgraphContext", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)),
    )


class TfLiteDelegateParams(ctypes.Structure):
    """What the init function of a delegate's operator gets: one partition."""

    _fields_ = (
        ("delegate", ctypes.c_void_p),
        ("nodes_to_replace", ctypes.c_void_p),
        ("input_tensors", ctypes.c_void_p),
        ("output_tensors", ctypes.c_void_p),
    )


PrepareFunction = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
CopyFunction = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(TfLiteTensor)
)
FreeHandleFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int))


class TfLiteDelegate(ctypes.Structure):
    """The delegate itself."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("Prepare", PrepareFunction),
        ("CopyFromBufferHandle", CopyFunction),
        ("CopyToBufferHandle", CopyFunction),
        ("FreeBufferHandle", FreeHandleFunction),
        ("flags", ctypes.c_int64),
        ("opaque_delegate_builder", ctypes.c_void_p),
    )


def context_at(address: int) -> TfLiteContext:
    """The context at an address."""
    return TfLiteContext.from_address(address)


def integers_at(address: int | None) -> tuple[int, ...]:
    """The values of a TfLiteIntArray."""
    if not address:
        return ()
    count = ctypes.c_int.from_address(address).value
    return tuple((ctypes.c_int * count).from_address(address + ctypes.sizeof(ctypes.c_int)))


def floats_at(address: int | None) -> tuple[float, ...]:
    """The values of a TfLiteFloatArray."""
    if not address:
        return ()
    count = ctypes.c_int.from_address(address).value
    return tuple((ctypes.c_float * count).from_address(address + ctypes.sizeof(ctypes.c_int)))


def int_array(values: Iterable[int]) -> "ctypes.Array[ctypes.c_int]":
    """A TfLiteIntArray in memory of ours."""
    each = tuple(values)
    return (ctypes.c_int * (len(each) + 1))(len(each), *each)
