"""All decoders, in the order in which they are asked: the first that knows a model reads its outputs."""

from .blaze_boxes import BLAZE_BOXES
from .body_points import BODY_POINTS
from .decoding import Decoder
from .eye_points import EYE_POINTS
from .face_points import ATTENTION_POINTS, FACE_POINTS
from .hand_points import HAND_POINTS
from .hand_recrop import HAND_RECROP

__all__ = ["DECODERS"]

DECODERS: tuple[Decoder, ...] = (
    BLAZE_BOXES,
    ATTENTION_POINTS,
    FACE_POINTS,
    EYE_POINTS,
    HAND_POINTS,
    BODY_POINTS,
    HAND_RECROP,
)
