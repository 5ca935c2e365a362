"""The environment variable that turns tuning off."""

import os

VARIABLE = "TEXELFLOW_TUNE"  # 0: kernels are as the GPU's family has them


def is_tuning_wanted() -> bool:
    """True unless VARIABLE is 0."""
    return os.environ.get(VARIABLE) != "0"
