"""Chooses the encoder and its options by a file's ending and what is asked for.

All encoders give each frame back at once, and the same bytes in every run and on every processor.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, get_args

from texelflow.gpu_delegate.base.errors import UsageError

Codec = Literal["auto", "h264", "vp9", "prores", "ffv1"]
CODECS: tuple[Codec, ...] = get_args(Codec)
USUAL_QUALITY = 75

_TAKEN: Mapping[str, tuple[str, ...]] = MappingProxyType(  # by ending; the first is what auto means
    {
        ".mp4": ("h264",),
        ".m4v": ("h264",),
        ".mov": ("h264", "prores"),
        ".mkv": ("h264", "vp9", "ffv1"),
        ".webm": ("vp9",),
    }
)
TRANSPARENT: Mapping[str, str] = MappingProxyType({".mov": "prores", ".webm": "vp9"})
_QUANTIZERS: Mapping[str, tuple[int, int]] = MappingProxyType(  # at quality 0 and at quality 100
    {
        "h264": (48, 8),  # CRF; 18 at the usual quality
        "vp9": (63, 3),  # CRF; 18
        "prores": (13, 1),  # the quantizer; 4
    }
)
_LAMBDA = 118  # FFmpeg's FF_QP2LAMBDA: units of global_quality in one of the quantizer
_KEY_FRAME_DISTANCE = "15"


@dataclass(frozen=True)
class Encoding:
    """An encoder of FFmpeg's: its options, and the pixel formats it is given for RGBA and for I420."""

    codec: str
    encoder: str
    options: Mapping[str, str]
    rgba_format: str
    i420_format: str = "yuv420p"
    alpha: bool = False
    i420_options: Mapping[str, str] = field(default_factory=dict)  # in place of options of the same names


def choose_encoding(ending: str, codec: str = "auto", quality: int | None = None, alpha: bool = False) -> Encoding:
    """What to encode with for a file of that ending ('.mp4'; a pipe is '.mkv'). Raises UsageError where nothing goes.

    `quality` is 0 to 100, 75 if None; see `quantizer`. `alpha` asks for transparency.
    """
    ending = ending.lower()
    if codec not in CODECS:
        raise UsageError(f"--codec {codec[:40]}: choose one of {', '.join(CODECS)}")
    taken = _TAKEN.get(ending)
    if taken is None:
        raise UsageError(f"a video cannot end in '{ending[:40]}'; its name must end in {', '.join(_TAKEN)}")
    if alpha and ending not in TRANSPARENT:
        raise UsageError(f"a video in {ending} has no transparency; .mov and .webm have it, and a folder of PNG files")
    chosen = (TRANSPARENT[ending] if alpha else taken[0]) if codec == "auto" else codec
    if chosen not in taken:
        homes = " or ".join(home for home, codecs in _TAKEN.items() if chosen in codecs)
        raise UsageError(f"--codec {chosen} does not go into {ending}, but into {homes}; {ending} takes {_or(taken)}")
    if alpha and chosen != TRANSPARENT[ending]:
        raise UsageError(f"--codec {chosen} has no transparency in {ending}; there --codec {TRANSPARENT[ending]} has")
    if quality is not None and chosen not in _QUANTIZERS:
        raise UsageError(f"--quality has no meaning for --codec {chosen}, which loses nothing; leave it out")
    return _encoding(chosen, USUAL_QUALITY if quality is None else quality, alpha)


def quantizer(codec: str, quality: int) -> int:
    """The CRF of H.264 and VP9, or the quantizer of ProRes: linear in the quality, finer where that is higher.

    | quality | h264 CRF | vp9 CRF | prores quantizer |
    | ---: | ---: | ---: | ---: |
    | 0 | 48 | 63 | 13 |
    | 25 | 38 | 48 | 10 |
    | 50 | 28 | 33 | 7 |
    | 75 (usual) | 18 | 18 | 4 |
    | 100 | 8 | 3 | 1 |

    Raises UsageError for a quality that is not from 0 to 100.
    """
    if not 0 <= quality <= 100:
        raise UsageError(f"--quality {quality}: it goes from 0 (small files) to 100; {USUAL_QUALITY} is usual")
    worst, best = _QUANTIZERS[codec]
    return worst - ((worst - best) * quality + 50) // 100


def _encoding(codec: str, quality: int, alpha: bool) -> Encoding:
    if codec == "ffv1":
        # Slices are counted by cores, if nobody says how many.
        options = {"level": "3", "slices": "4", "slicecrc": "1", "g": "1"}
        return Encoding(codec, "ffv1", options, "bgr0")
    level = quantizer(codec, quality)
    if codec == "prores":
        options = {"profile": "4444" if alpha else "hq", "global_quality": str(level * _LAMBDA)}
        form = "yuva444p10le" if alpha else "yuv422p10le"
        return Encoding(codec, "prores_ks", options, form, "yuv422p10le", alpha)
    if codec == "vp9":
        # The real-time mode at 7 takes less time than H.264's veryfast; "good" takes five times as long for a quarter
        # less bytes. No frames in flight, no hidden frames, which alpha forbids, and no rows in threads, whose number
        # would change the bytes.
        options = {"deadline": "realtime", "cpu-used": "7", "lag-in-frames": "0", "auto-alt-ref": "0", "row-mt": "0"}
        options |= {"crf": str(level), "g": _KEY_FRAME_DISTANCE}
        return Encoding(codec, "libvpx-vp9", options, "yuva420p" if alpha else "yuv420p", alpha=alpha)
    # zerolatency: no frames in flight, no B-frames (whose time stamps fragments would shift), the same bytes in every
    # run. annexb=0: units with their sizes, as both containers keep them. cpu-independent=1: the same bytes whatever
    # instructions the processor has. chromaloc=1: amid 2x2 pixels, as I420 has it.
    options = {"preset": "veryfast", "tune": "zerolatency", "crf": str(level), "g": _KEY_FRAME_DISTANCE}
    own = "annexb=0:cpu-independent=1"
    amid = {"x264-params": f"{own}:chromaloc=1"}
    return Encoding(codec, "libx264", options | {"x264-params": own}, "yuv420p", i420_options=amid)


def _or(names: tuple[str, ...]) -> str:
    return " or ".join(names)
