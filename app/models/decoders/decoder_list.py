"""All decoders, in the order in which they are asked: the first that knows a model reads its outputs."""

from .blaze_boxes import BLAZE_BOXES
from .body_networks import HEAT_MAPS, MOVENET, MOVENET_MULTIPOSE, POSENET, POSES
from .body_points import BODY_POINTS
from .class_scores import CLASS_SCORES
from .decoding import Decoder
from .detection_outputs import DETECTION_OUTPUTS
from .eye_points import EYE_POINTS
from .face_points import ATTENTION_POINTS, FACE_POINTS
from .hand_points import HAND_POINTS
from .hand_recrop import HAND_RECROP
from .raw_ssd import EFFICIENT_ROWS, RAW_SSD
from .yolo import YOLO_BOXES, YOLO_CHOSEN, YOLO_POINTS

__all__ = ["DECODERS"]

DECODERS: tuple[Decoder, ...] = (
    BLAZE_BOXES,
    ATTENTION_POINTS,
    FACE_POINTS,
    EYE_POINTS,
    HAND_POINTS,
    BODY_POINTS,
    HAND_RECROP,
    DETECTION_OUTPUTS,
    RAW_SSD,
    YOLO_POINTS,
    YOLO_BOXES,
    MOVENET,
    MOVENET_MULTIPOSE,
    YOLO_CHOSEN,
    EFFICIENT_ROWS,
    POSENET,
    POSES,
    HEAT_MAPS,
    CLASS_SCORES,  # the last: it takes any vector, or says what would help
)
