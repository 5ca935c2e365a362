"""The ops that stay with TensorFlow Lite in any form, each with the reason."""

from collections.abc import Mapping
from types import MappingProxyType

_BOTH = "goes over time in both directions"
RUNS_SUBGRAPHS = "runs other subgraphs"
_RANK = "five dimensions, at most 4 are possible"

LEFT_TO_CPU: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("CONV_3D", "CONV_3D_TRANSPOSE"), _RANK),
        **dict.fromkeys(
            ("BIDIRECTIONAL_SEQUENCE_RNN", "BIDIRECTIONAL_SEQUENCE_LSTM"),
            _BOTH,
        ),
        "IF": RUNS_SUBGRAPHS,
    }
)  # fmt: skip
