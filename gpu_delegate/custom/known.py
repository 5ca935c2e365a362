"""The custom ops that the engine itself computes by functions."""

from collections.abc import Mapping

from .custom_op import CustomOp, by_name
from .detection import DETECTION_POSTPROCESS
from .posenet import POSENET_DECODER

KNOWN_CUSTOM_OPS: Mapping[str, CustomOp] = by_name((DETECTION_POSTPROCESS, POSENET_DECODER))  # by their names in files
