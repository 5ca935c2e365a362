"""Reads the statistics of different drivers into common figures."""

import re
from dataclasses import dataclass

Numbers = dict[str, float]

_PAIRS = re.compile(r"(\d+(?:\.\d+)?) \(?([A-Za-z][\w()/-]*(?: (?:inst|size|regs))?)")
_AMD = re.compile(r"([A-Z][A-Za-z ]+): (\d+)")
_COMPUTE = re.compile(r"(?:CS|CL|MESA_SHADER_COMPUTE)(?: SIMD(\d+))? shader")  # CL: Qualcomm's word


@dataclass(frozen=True)
class Figures:
    """Of one shader on one GPU; None where its driver does not say."""

    width: int | None = None  # of SIMD, in threads
    instructions: int | None = None
    cycles: float | None = None  # that the compiler estimates, loops with an invented number of turns
    registers: int | None = None
    spills: int = 0
    fills: int = 0
    waves: int | None = None  # that fit a unit at once
    code_bytes: int | None = None
    branches: int | None = None
    loops: int | None = None
    latency: int | None = None  # cycles, by RADV
    inverse_throughput: int | None = None
    executed: int | None = None  # instructions of one SIMD thread, with each loop's number of turns


def parse(text: str) -> Figures | None:
    """The figures in one message about a compute shader; None for another message."""
    if text.startswith("Shader Stats:"):
        return _amd(text) if "(CS," in text else None
    head, _, rest = text.partition(":")
    found = _COMPUTE.fullmatch(head)
    if not found:
        return None
    numbers: Numbers = {"simd": int(found[1])} if found[1] else {}
    if spilled := re.search(r"(\d+):(\d+) spills:fills", rest):
        numbers |= {"spills": int(spilled[1]), "fills": int(spilled[2])}
        rest = rest.replace(spilled[0], "")
    if compacted := re.search(r"compacted (\d+) to (\d+) bytes", rest):
        numbers["bytes"] = int(compacted[2])
        rest = rest.replace(compacted[0], "")
    rest = re.sub(r"scheduled with mode \S+,", "", rest)
    numbers |= {name.strip(): float(value) for value, name in _PAIRS.findall(rest)}
    return _common(numbers)


def _amd(text: str) -> Figures:
    numbers: Numbers = {name.strip().lower(): int(value) for name, value in _AMD.findall(text.partition(":")[2])}
    wave = re.search(r"W(\d+)\)", text)
    return _common({"simd": int(wave[1]), **numbers} if wave else numbers)


def _common(numbers: Numbers) -> Figures:
    def pick(*names: str) -> int | None:
        return next((int(numbers[name]) for name in names if name in numbers), None)

    size = pick("bytes", "code size") or 16 * (pick("quadwords") or 0) or 4 * (pick("dwords") or 0)
    return Figures(
        width=pick("simd", "wave"),
        instructions=pick("inst", "instrs", "instructions"),
        cycles=next((numbers[name] for name in ("cycles", "alu", "inst-and-stalls") if name in numbers), None),
        registers=pick("vgprs", "full", "max-temps", "regs", "gprs", "registers"),
        spills=pick("spills", "spilled vgprs", "stp") or 0,
        fills=pick("fills", "ldp") or 0,
        waves=pick("max waves", "waves", "threads"),
        code_bytes=size or None,
        branches=pick("branches"),
        loops=pick("loops"),
        latency=pick("latency"),
        inverse_throughput=pick("inverse throughput"),
    )
