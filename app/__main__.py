"""Where the program starts: signals are handled from the first line on, since imports take a while."""

import gc
import io
import os
import sys

GARBAGE_AFTER = 10_000  # new objects; 700 by default


def main() -> int:
    """Run the command line; its exit code comes out."""
    gc.set_threshold(GARBAGE_AFTER)  # what is imported stays, and need not be looked through again and again
    if sys.platform == "win32":  # OpenCV reads it when it is loaded: without it, opening a camera takes seconds
        os.environ.setdefault("OPENCV_VIDEOIO_MSMF_ENABLE_HW_TRANSFORMS", "0")
    if isinstance(sys.stdout, io.TextIOWrapper):  # what an old code page cannot show becomes a question mark
        sys.stdout.reconfigure(errors="replace")
    try:
        from .cli import main as run

        return run()
    except KeyboardInterrupt:
        print("texelflow: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
