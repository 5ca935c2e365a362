"""The environment goes in; whether kernels are tuned, and earlier tunings count, comes out."""

import os

VARIABLE = "TEXELFLOW_TUNE"  # 0: kernels are as the GPU's family has them


def is_tuning_wanted() -> bool:
    """True unless VARIABLE is 0."""
    return os.environ.get(VARIABLE) != "0"
