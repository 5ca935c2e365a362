"""Words the line that says how long compiling took, or is expected to take."""

ROUNDING = 1.05  # of a budget, which whole kernels do not meet exactly


def compile_line(estimated_s: float, budget_s: float, measured_s: float | None = None) -> str:
    """What the driver's compiler takes of the CPU, and by how much that is more than --compile-budget."""
    text = f"compiling: about {estimated_s:.1f} s of the CPU with empty caches, {budget_s:g} s asked for"
    if measured_s is not None:
        text += f"; {measured_s:.1f} s now"
    if estimated_s > ROUNDING * budget_s:
        text += f"; {estimated_s - budget_s:.1f} s too much: no shorter kernels are known"
    elif measured_s is not None and measured_s > ROUNDING * budget_s:
        text += f"; {measured_s - budget_s:.1f} s too much: this driver takes longer than was estimated"
    return text
