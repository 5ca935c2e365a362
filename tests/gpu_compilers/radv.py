"""The process that compiles kernels with Mesa's RADV: JSON on standard input and output.

Run by compilers.py, with RADV_FORCE_FAMILY in the environment: RADV then needs no GPU, and runs nothing.
"""

import json
import sys
import time
from typing import Any

from texelflow.gpu_delegate.device.limits import HALF_EXTENSIONS

from .fake_device import tell
from .glslang import compile_spirv
from .vulkan import Vulkan


def main() -> None:
    vulkan = Vulkan()
    tell(
        {
            "renderer": vulkan.name,
            "version": f"Mesa {vulkan.version}",
            "limits": {"half_arithmetic": HALF_EXTENSIONS[0]},
        }
    )
    for name, source in json.load(sys.stdin).items():
        tell({"name": name, **_compiled(vulkan, source)})


def _compiled(vulkan: Vulkan, source: str) -> dict[str, Any]:
    try:
        module = compile_spirv(source)
        start = time.process_time()
        counted, listing = vulkan.statistics(module)
    except (ValueError, RuntimeError) as error:
        return {"said": [], "log": str(error), "seconds": 0.0}
    return {"counted": counted, "listing": listing, "log": None, "seconds": round(time.process_time() - start, 3)}


if __name__ == "__main__":
    main()
