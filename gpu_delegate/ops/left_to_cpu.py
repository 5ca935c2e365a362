"""The ops that stay with TensorFlow Lite in any form, each with the reason."""

from collections.abc import Mapping
from types import MappingProxyType

_STATE = "keeps a state from run to run, which stays in TensorFlow Lite"
RUNS_SUBGRAPHS = "runs other subgraphs"
_RANK = "five dimensions, at most 4 are possible"

LEFT_TO_CPU: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("CONV_3D", "CONV_3D_TRANSPOSE"), _RANK),
        **dict.fromkeys(
            (
                "SVDF", "RNN", "UNIDIRECTIONAL_SEQUENCE_RNN", "UNIDIRECTIONAL_SEQUENCE_LSTM",
                "BIDIRECTIONAL_SEQUENCE_RNN", "BIDIRECTIONAL_SEQUENCE_LSTM",
            ),
            _STATE,
        ),
        "IF": RUNS_SUBGRAPHS,
    }
)  # fmt: skip
