"""Work-groups that TensorFlow Lite's OpenGL delegate has for Qualcomm's GPUs: shown beside what is measured here.

Source: google-ai-edge/LiteRT at f67457790, tflite/delegates/gpu/gl/workgroups/ideal_workgroup_picker.cc, what the
program has of Table 2 of Lee et al., "On-Device Neural Net Inference with Mobile GPUs" (arXiv 1907.01989). Sides are
(x, y, z) in threads; None where the delegate has no entry.
"""

from collections.abc import Mapping
from types import MappingProxyType

GroupSides = tuple[int, int, int]

COLUMNS = (
    "convolution",
    "depthwise",
    "1x1, stride 1",
    "3x3, stride 2",
    "depthwise 1x1, stride 1",
    "depthwise 3x3, stride 2",
)

ADRENO_GROUPS: Mapping[str, tuple[GroupSides | None, ...]] = MappingProxyType(
    {
        "Adreno 630": ((4, 8, 4), (4, 4, 8), (4, 8, 4), (8, 4, 4), (8, 4, 4), (4, 4, 4)),
        # Its last four are in the delegate's table, and never used there.
        "Adreno 540": ((8, 2, 2), (8, 8, 2), (4, 2, 8), (8, 2, 8), (8, 4, 8), (4, 4, 8)),
        "Adreno 510": ((8, 4, 4), (8, 4, 4), (4, 2, 8), (8, 2, 8), (8, 4, 8), (4, 4, 8)),
        "Adreno 509": ((8, 4, 8), (8, 8, 2), None, None, None, None),
        "Adreno 508, 506, 505, 418, 405": ((8, 4, 8), (8, 4, 8), None, None, None, None),
    }
)
