"""The program's first lines: what they load takes a while, and a signal may come meanwhile."""

import os
import sys


def main() -> int:
    """Run the command line; its exit code comes out."""
    if sys.platform == "win32":  # read when OpenCV is loaded: without it, opening a camera takes seconds
        os.environ.setdefault("OPENCV_VIDEOIO_MSMF_ENABLE_HW_TRANSFORMS", "0")
    try:
        from .cli import main as run

        return run()
    except KeyboardInterrupt:
        print("texelflow: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
