"""How a network is to run on frames, as one value that every way to run it takes."""

from dataclasses import dataclass

from texelflow.gpu_delegate.plan.compile_options import COMPILE_DEFAULTS, CompileOptions
from texelflow.gpu_delegate.programs.model_sharing import ModelSharing

from ...picture.preprocess import Fit, Preprocessing


@dataclass(frozen=True)
class NetworkOptions:
    """What does not depend on the machine, the model and the frames."""

    compiling: CompileOptions = COMPILE_DEFAULTS  # for the GPU; the CPU has float32, or bf16 for products
    fit: Fit = "stretch"
    preprocessing: Preprocessing = "plain"
    weights_cache: ModelSharing | None = None  # what has the same one shares weights and code
    most: int = 0  # things that a network which finds some follows; 0: as many as is usual
    detail: bool = False  # whether it looks at people once more, larger (app/frame/refinement/detail.py)
    held: bool = False  # whether what moves with hands joins its masks (app/frame/refinement/held.py)


NETWORK_DEFAULTS = NetworkOptions()
