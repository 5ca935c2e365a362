"""The flags of TensorFlow Lite's benchmark_model that have no meaning here, each with the reason.

Those that are off, or at their default, are passed over; others end the program, unless they change no figure. Help
needs this table at once, so it imports next to nothing.
"""

from dataclasses import dataclass, replace
from types import MappingProxyType

_OFF = ("", "0", "-1", "false")


@dataclass(frozen=True)
class Meaningless:
    """Why a flag says nothing here; `harmless` if its value changes no figure of the original either."""

    reason: str
    harmless: bool = False
    off: tuple[str, ...] = _OFF  # values that ask for nothing


_NNAPI = Meaningless("NNAPI is Android's")
_HEXAGON = Meaningless("Hexagon is a processor of phones, with a delegate of its maker's")
_CORE_ML = Meaningless("Core ML is Apple's")
_EXTERNAL = Meaningless("no delegates but ours and XNNPACK are loaded")
_DEBUGGING = Meaningless("delegates take a range of operators in special builds alone", off=(*_OFF, "2147483647"))
_MEMORY_RULE = Meaningless("TensorFlow Lite's Python package has no such option of the interpreter")
_PROTO = Meaningless("protocol buffers are not written: --json and --model_runtime_info_output_file are JSON")
_BUFFER = Meaningless("dispatches are timed one by one, without a buffer of events", harmless=True)
_WIDTHS = Meaningless("columns are as wide as the terminal lets them be", harmless=True)
_LOGGED = Meaningless("the original does nothing with it but log it", harmless=True)

MEANINGLESS = MappingProxyType(
    {
        **dict.fromkeys(
            (
                "use_nnapi", "nnapi_accelerator_name", "nnapi_execution_preference", "nnapi_execution_priority",
                "nnapi_allow_fp16", "nnapi_allow_dynamic_dimensions", "nnapi_use_burst_mode",
                "nnapi_support_library_path",
            ),
            _NNAPI,
        ),
        "disable_nnapi_cpu": replace(_NNAPI, harmless=True),
        **dict.fromkeys(("use_hexagon", "hexagon_profiling", "hexagon_lib_path"), _HEXAGON),
        **dict.fromkeys(("use_coreml", "coreml_version"), _CORE_ML),
        **dict.fromkeys(
            (
                "external_delegate_path", "external_delegate_options", "stable_delegate_loader_settings",
                "stable_delegate_settings_file", "stable_abi_delegate_settings_file",
            ),
            _EXTERNAL,
        ),
        **dict.fromkeys(("first_delegate_node_index", "last_delegate_node_index"), _DEBUGGING),
        **dict.fromkeys(
            (
                "release_dynamic_tensors", "optimize_memory_for_large_tensors", "disable_delegate_clustering",
                "enable_builtin_cast_constant_cache", "use_caching",
            ),
            _MEMORY_RULE,
        ),
        **dict.fromkeys(
            ("xnnpack_force_fp16", "xnnpack_weight_cache_file_path"),
            Meaningless("TensorFlow Lite's Python package has no such option of XNNPACK"),
        ),
        **dict.fromkeys(("output_proto_filepath", "result_file_path"), _PROTO),
        **dict.fromkeys(("max_profiling_buffer_entries", "allow_dynamic_profiling_buffer_increase"), _BUFFER),
        **dict.fromkeys(
            ("tensor_name_display_length", "tensor_type_display_length", "alloc_type_display_length"), _WIDTHS
        ),
        "output_prefix": _LOGGED,
        "gpu_invoke_loop_times": Meaningless("loops are a special build's", off=("", "0", "1")),
    }
)  # fmt: skip
