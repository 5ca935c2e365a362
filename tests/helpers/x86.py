"""Finds in an x86 listing the loop that computes most."""

import re


def inner_loop(listing: str) -> str:
    """What stands between a label and a jump back to it, of the loop that multiplies most vectors, the widest first."""
    lines = [line.split("#")[0].strip() for line in listing.splitlines()]
    labels = {line[:-1]: number for number, line in enumerate(lines) if re.fullmatch(r"\.LBB\w+:", line)}
    loops = [
        lines[labels[target] + 1 : number + 1]
        for number, line in enumerate(lines)
        for target in re.findall(r"^j\w+\s+(\.LBB\w+)$", line)
        if labels.get(target, number) < number
    ]
    innermost = ["\n".join(filter(None, loop)) for loop in loops if not any(line.endswith(":") for line in loop)]
    return max(innermost, key=lambda loop: (len(re.findall(r"vfmadd|vdpbf16ps", loop)), loop.count("%zmm")))
