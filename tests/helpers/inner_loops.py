"""Finds the innermost loops of an assembly listing."""

import re


def innermost_loops(listing: str, comment: str, jump: str) -> list[list[str]]:
    """Lines between a label and a jump back to it, without labels inside; `jump` matches one, and its target."""
    lines = [line.split(comment)[0].strip() for line in listing.splitlines()]
    labels = {line[:-1]: number for number, line in enumerate(lines) if re.fullmatch(r"\.LBB\w+:", line)}
    loops = [
        lines[labels[target] + 1 : number + 1]
        for number, line in enumerate(lines)
        for target in re.findall(jump, line)
        if labels.get(target, number) < number
    ]
    return [[line for line in loop if line] for loop in loops if not any(line.endswith(":") for line in loop)]
