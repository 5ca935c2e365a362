"""Finds in an x86 listing the loop that computes most."""

import re

from tests.helpers.inner_loops import innermost_loops


def inner_loop(listing: str) -> str:
    """What stands between a label and a jump back to it, of the loop that multiplies most vectors, the widest first."""
    loops = map("\n".join, innermost_loops(listing, "#", r"^j\w+\s+(\.LBB\w+)$"))
    return max(loops, key=lambda loop: (len(re.findall(r"vfmadd|vdpbf16ps", loop)), loop.count("%zmm")))
