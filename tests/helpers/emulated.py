"""Runs code for CPUs that are not here: their instructions as functions of LLVM's language, on this machine.

What LLVM makes of vectors wider than this machine's is right anyway; only calls of a CPU's own intrinsics need a body,
and what hides how a vector was computed keeps it in one register: it is left out.
"""

import re
from collections.abc import Callable, Mapping

from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.targets.llvm.compiler import CompiledCode, native_target, object_code
from texelflow.gpu_delegate.targets.llvm.ir import Module
from texelflow.gpu_delegate.targets.llvm.machine import CpuTarget
from texelflow.gpu_delegate.targets.llvm.native_program import compile_native
from texelflow.gpu_delegate.targets.llvm.native_runtime import CheckedNetwork
from texelflow.gpu_delegate.targets.llvm.pool import WorkerPool

_HIDDEN = re.compile(r'call (<[^>]*>) asm "", "=v,0"\((.*)\)')
_DECLARED = re.compile(r"^declare (\S+ x \S+|<[^>]*>) @(llvm\.(?:x86|aarch64)\.[\w.]+)\(.*\)$", re.MULTILINE)


def emulated_network(graph: Graph, target: CpuTarget) -> CheckedNetwork:
    """A network with the code of a target, whose own instructions are emulated, run by one thread."""
    module = Module()
    program = compile_native(graph, target, module=module)
    here = native_target()
    names = sorted({kernel.symbol for kernel in program.kernels})
    code = CompiledCode([object_code(emulated(module.text), here)], names, {}, here)
    return CheckedNetwork(program, code, WorkerPool(here, 1))


def emulated(text: str) -> str:
    """A module that calls no intrinsics of CPUs. Raises KeyError for one that has no emulation."""
    defined = []
    for _, name in _DECLARED.findall(text):
        family = next(each for each in _FAMILIES if each in name)
        defined.append(_FAMILIES[family](name))
    lines = "\n".join([_DECLARED.sub("", text), *defined]).splitlines()
    declared = dict.fromkeys(line for line in lines if line.startswith("declare "))
    whole = "\n".join([*declared, *(line for line in lines if not line.startswith("declare "))])
    return _HIDDEN.sub(r"bitcast \2 to \1", re.sub(r"@llvm\.(x86|aarch64)\.", r"@\1.", whole))


def _lanes(name: str, bits: int) -> int:
    """How many lanes of so many bits a vector has."""
    said = name.rpartition(".")[2]
    width = int(said) if said in ("128", "256", "512") else 256 if "avx2" in name else 128
    return width // bits


def _vector(kind: str, lanes: int) -> str:
    return f"<{lanes} x {kind}>"


def _shuffled(kind: str, left: str, right: str, lanes: list[int], count: int) -> str:
    mask = ", ".join(f"i32 {lane}" for lane in lanes)
    whole = _vector(kind, count)
    return f"shufflevector {whole} {left}, {whole} {right}, <{len(lanes)} x i32> <{mask}>"


def _dot(together: int, unsigned: bool, adds: bool) -> Callable[[str], str]:
    """Sums of products of neighboring parts of ints, and of another int."""

    def make(name: str) -> str:
        count = _lanes(name, 32)
        parts, ints = count * together, _vector("i32", count)
        narrow, wide = _vector(f"i{32 // together}", parts), _vector("i32", parts)
        total, taken = ("%t, ", ints + " ") if adds else ("", "")
        kinds = narrow if "neon" in name or not adds else ints
        first = f"{taken}{total}" if adds else ""
        lines = [f"define {ints} @{name}({first}{kinds} %a, {kinds} %b) alwaysinline {{"]
        for each, way in (("a", "zext" if unsigned else "sext"), ("b", "sext")):
            lines.append(f"  %{each}1 = bitcast {kinds} %{each} to {narrow}")
            lines.append(f"  %{each}2 = {way} {narrow} %{each}1 to {wide}")
        lines.append(f"  %p = mul {wide} %a2, %b2")
        for k in range(together):
            taken_lanes = [together * lane + k for lane in range(count)]
            lines.append(f"  %p{k} = {_shuffled('i32', '%p', '%p', taken_lanes, parts)}")
        lines.append(f"  %s0 = add {ints} {'%t' if adds else 'zeroinitializer'}, %p0")
        lines += [f"  %s{k} = add {ints} %s{k - 1}, %p{k}" for k in range(1, together)]
        return "\n".join([*lines, f"  ret {ints} %s{together - 1}", "}"])

    return make


def _pack(bits: int, signed: bool) -> Callable[[str], str]:
    """Ints of two vectors as ints of half as many bits, saturated: of each 16 bytes of one, then of the other."""

    def make(name: str) -> str:
        count, half = _lanes(name, bits), bits // 2
        wide, out = _vector(f"i{bits}", count), _vector(f"i{half}", 2 * count)
        low, high = (-(1 << (half - 1)), (1 << (half - 1)) - 1) if signed else (0, (1 << half) - 1)
        lines = [f"define {out} @{name}({wide} %a, {wide} %b) alwaysinline {{"]
        for each in "ab":
            for k, (which, limit) in enumerate((("smax", low), ("smin", high))):
                operands = f"{wide} %{each}{k or ''}, {wide} splat (i{bits} {limit})"
                lines.append(f"  %{each}{k + 1} = call {wide} @llvm.{which}.v{count}i{bits}({operands})")
            lines.append(f"  %{each}3 = trunc {wide} %{each}2 to {_vector(f'i{half}', count)}")
        block = 128 // bits
        lanes = [side * count + first + k for first in range(0, count, block) for side in (0, 1) for k in range(block)]
        lines.append(f"  %r = {_shuffled(f'i{half}', '%a3', '%b3', lanes, count)}")
        declared = [f"declare {wide} @llvm.{which}.v{count}i{bits}({wide}, {wide})" for which in ("smax", "smin")]
        return "\n".join([*declared, *lines, f"  ret {out} %r", "}"])

    return make


def _high_product(name: str) -> str:
    """SQRDMULH: the upper half of twice a product, rounded up at one half."""
    ints, longs = "<4 x i32>", "<4 x i64>"
    return f"""define {ints} @{name}({ints} %a, {ints} %b) alwaysinline {{
  %a1 = sext {ints} %a to {longs}
  %b1 = sext {ints} %b to {longs}
  %p = mul {longs} %a1, %b1
  %r = add {longs} %p, splat (i64 {1 << 30})
  %s = ashr {longs} %r, splat (i64 31)
  %t = trunc {longs} %s to {ints}
  ret {ints} %t
}}"""


def _permute(kind: str, index: str, bits: int) -> Callable[[str], str]:
    """Lanes of a vector by number."""

    def make(name: str) -> str:
        count = _lanes(name, bits)
        values, places = _vector(kind, count), _vector(index, count)
        lines = [f"define {values} @{name}({values} %a, {places} %i) alwaysinline {{"]
        before = "poison"
        for lane in range(count):
            lines.append(f"  %i{lane} = extractelement {places} %i, i32 {lane}")
            lines.append(f"  %m{lane} = and {index} %i{lane}, {count - 1}")
            lines.append(f"  %e{lane} = extractelement {values} %a, {index} %m{lane}")
            lines.append(f"  %r{lane} = insertelement {values} {before}, {kind} %e{lane}, i32 {lane}")
            before = f"%r{lane}"
        return "\n".join([*lines, f"  ret {values} {before}", "}"])

    return make


def _flushed(name: str, value: str, count: int) -> list[str]:
    """Lines that make %NAME of floats: those below 2^-126 are 0."""
    floats, ints = _vector("float", count), _vector("i32", count)
    return [
        f"  %{name}.bits = bitcast {floats} {value} to {ints}",
        f"  %{name}.power = and {ints} %{name}.bits, splat (i32 {0x7F800000})",
        f"  %{name}.small = icmp eq {ints} %{name}.power, zeroinitializer",
        f"  %{name} = select <{count} x i1> %{name}.small, {floats} zeroinitializer, {floats} {value}",
    ]


def _two_to_halves(name: str) -> str:
    """Floats, but no NaN, as bfloat16, rounded to the nearest or even: of the second vector, then of the first."""
    count = _lanes(name, 32)
    floats, ints, whole = _vector("float", count), _vector("i32", count), _vector("bfloat", 2 * count)
    lines = [f"define {whole} @{name}({floats} %a, {floats} %b) alwaysinline {{"]
    for each in "ab":
        lines += _flushed(f"{each}1", f"%{each}", count)
        lines += [
            f"  %{each}2 = bitcast {floats} %{each}1 to {ints}",
            f"  %{each}3 = lshr {ints} %{each}2, splat (i32 16)",
            f"  %{each}4 = and {ints} %{each}3, splat (i32 1)",
            f"  %{each}5 = add {ints} %{each}4, splat (i32 {0x7FFF})",
            f"  %{each}6 = add {ints} %{each}2, %{each}5",
            f"  %{each}7 = lshr {ints} %{each}6, splat (i32 16)",
            f"  %{each}8 = trunc {ints} %{each}7 to {_vector('i16', count)}",
        ]
    lines.append(f"  %w = {_shuffled('i16', '%b8', '%a8', list(range(2 * count)), count)}")
    lines.append(f"  %r = bitcast {_vector('i16', 2 * count)} %w to {whole}")
    return "\n".join([*lines, f"  ret {whole} %r", "}"])


def _dot_of_halves(name: str) -> str:
    """A sum of floats and the products of the upper bfloat16 of each lane, then of the lower ones."""
    count = _lanes(name, 32)
    floats, ints, whole = _vector("float", count), _vector("i32", count), _vector("bfloat", 2 * count)
    lines = [f"define {floats} @{name}({floats} %t, {whole} %a, {whole} %b) alwaysinline {{"]
    lines += _flushed("s2", "%t", count)
    for side in (1, 0):
        for each in "ab":
            part = f"{each}{side}"
            lines.append(f"  %{part}.pair = bitcast {whole} %{each} to {ints}")
            if side:
                lines.append(f"  %{part}.bits = and {ints} %{part}.pair, splat (i32 {-65536})")
            else:
                lines.append(f"  %{part}.bits = shl {ints} %{part}.pair, splat (i32 16)")
            lines.append(f"  %{part} = bitcast {ints} %{part}.bits to {floats}")
            lines += _flushed(f"{each}f{side}", f"%{part}", count)
        operands = ", ".join(f"{floats} %{each}" for each in (f"af{side}", f"bf{side}", f"s{side + 1}"))
        lines.append(f"  %r{side} = call {floats} @llvm.fma.v{count}f32({operands})")
        lines += _flushed(f"s{side}", f"%r{side}", count)
    declared = f"declare {floats} @llvm.fma.v{count}f32({floats}, {floats}, {floats})"
    return "\n".join([declared, *lines, f"  ret {floats} %s0", "}"])


_FAMILIES: Mapping[str, Callable[[str], str]] = {
    "vpdpbusd": _dot(4, unsigned=True, adds=True),
    "vpdpwssd": _dot(2, unsigned=False, adds=True),
    "pmadd": _dot(2, unsigned=False, adds=False),
    "sdot": _dot(4, unsigned=False, adds=True),
    "packssdw": _pack(32, signed=True),
    "packuswb": _pack(16, signed=False),
    "sqrdmulh": _high_product,
    "permvar.sf": _permute("float", "i32", 32),
    "permps": _permute("float", "i32", 32),
    "vpermilvar": _permute("float", "i32", 32),
    "tbl1": _permute("i8", "i8", 8),
    "cvtne2ps2bf16": _two_to_halves,
    "dpbf16ps": _dot_of_halves,
}
