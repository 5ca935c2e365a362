"""Runs networks on 64-bit ARM: cross-compiled, and executed by an emulator."""

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.helpers.inner_loops import innermost_loops
from texelflow.gpu_delegate.model.packing import Float32Array, check_values, in_file_type, to_kernels
from texelflow.gpu_delegate.targets.llvm.compiler import object_code
from texelflow.gpu_delegate.targets.llvm.image import NativeStep, StoredTensor, image_of
from texelflow.gpu_delegate.targets.llvm.ir import Module
from texelflow.gpu_delegate.targets.llvm.machine import NEON, CpuTarget
from texelflow.gpu_delegate.targets.llvm.native_program import NativeProgram
from texelflow.gpu_delegate.targets.llvm.planes import from_planes, tensor_floats, write_planes

Values = npt.NDArray[Any]

COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"
_DRIVER = Path(__file__).parent / "arm_driver.c"


def missing_tools() -> str:
    """Why nothing can be run here; empty where all is there."""
    missing = [name for name in (COMPILER, EMULATOR) if not shutil.which(name)]
    return f"no {' and no '.join(missing)}: Debian's gcc-aarch64-linux-gnu and qemu-user have them" if missing else ""


def run_on_arm(
    module: Module,
    programs: Mapping[str, NativeProgram],
    inputs: Mapping[str, Sequence[Values]],
    folder: Path,
    target: CpuTarget = NEON,
) -> dict[str, list[Values]]:
    """The outputs of programs whose functions are in a module, by name."""
    symbols = sorted({kernel.symbol for program in programs.values() for kernel in program.kernels})
    (folder / "kernels.o").write_bytes(object_code(module.text, target))
    lines = [f"void {symbol}(float **, float *, int, int, int, int);" for symbol in symbols]
    table = "typedef void (*Kernel)(float **, float *, int, int, int, int);\n"
    table += "\n".join(lines) + f"\nKernel const kernels[] = {{{', '.join(symbols)}}};\n"
    (folder / "table.c").write_text(table)
    sources = [str(folder / "table.c"), str(_DRIVER), str(folder / "kernels.o")]
    subprocess.run([COMPILER, "-O1", "-static", "-o", str(folder / "networks"), *sources, "-lm"], check=True)
    jobs = [_job(program, inputs[name], symbols) for name, program in programs.items()]
    told = np.int32(len(jobs)).tobytes() + b"".join(jobs)
    ran = subprocess.run([EMULATOR, str(folder / "networks")], input=told, capture_output=True, check=True)
    memory, found = np.frombuffer(ran.stdout, np.float32), dict[str, list[Values]]()
    for name, program in programs.items():
        image = image_of(program, (), ())
        arena, memory = memory[: image.arena_floats], memory[image.arena_floats :]
        found[name] = [_read(arena, image.tensors[number]) for number in image.outputs]
    return found


def _job(program: NativeProgram, inputs: Sequence[Values], symbols: Sequence[str]) -> bytes:
    """What the driver reads of one network."""
    image = image_of(program, (), ())
    arena = np.zeros(image.arena_floats, np.float32)
    for number, values in zip(image.inputs, inputs, strict=True):
        stored = image.tensors[number]
        memory = arena[stored.place : stored.place + stored.floats]
        given = to_kernels(check_values(values.reshape(stored.own.shape), stored.own), stored.own, stored.shape)
        write_planes(memory, given, stored.shape, stored.storage)
    calls = [_call(step, symbols) for step in image.steps]
    parts: list[Float32Array | npt.NDArray[np.int32]] = [_numbers(arena.size), arena, _numbers(image.weights.size)]
    parts += [image.weights, _numbers(len(calls)), *calls]
    return b"".join(part.tobytes() for part in parts)


def _call(step: NativeStep, symbols: Sequence[str]) -> npt.NDArray[np.int32]:
    places = [number for of_weights, place in step.tensors for number in (int(of_weights), place)]
    given = symbols.index(step.symbol), len(step.tensors), *places
    return _numbers(*given, step.weights, step.row_groups, step.slice_blocks)


def _numbers(*values: int) -> npt.NDArray[np.int32]:
    return np.array(values, np.int32)


def _read(arena: Float32Array, stored: StoredTensor) -> Values:
    data = arena[stored.place : stored.place + tensor_floats(stored.shape, stored.storage)]
    return in_file_type(from_planes(data, stored.shape, stored.storage), stored.own).reshape(stored.own.shape)


# What a model of a CPU says -------------------------------------------------------------------------------------------


def inner_loop(listing: str) -> str:
    """The loop of an ARM listing that multiplies most by lanes, as sums do: between a label and a branch back to it."""
    loops = innermost_loops(listing, "//", r"^(?:b|b\.\w+|cb\w+|tb\w+)\s.*?(\.LBB\w+)$")
    best = max(loops, key=lambda loop: (_by_lanes("\n".join(loop)), -len(loop)))  # not that of a map's edges
    return "\n".join(best)


def multiply_adds_a_cycle(loop: str, cpu: str = "cortex-a72", turns: int = 100) -> float:
    """How many vectors a loop multiplies and adds in a cycle, as llvm-mca has it."""
    command = ["llvm-mca", "-mtriple=aarch64", f"-mcpu={cpu}", f"-iterations={turns}", "-"]
    told = subprocess.run(command, input=loop, capture_output=True, text=True, check=True).stdout
    cycles = re.search(r"Total Cycles:\s+(\d+)", told)
    assert cycles
    return _multiply_adds(loop) * turns / int(cycles[1])


def _by_lanes(code: str) -> int:
    return len(re.findall(r"(?:fmla|sdot)\s.*\[\d\]", code))


def _multiply_adds(code: str) -> int:
    """Instructions that multiply and add vectors of floats, or of four bytes in a lane."""
    return code.count("fmla") + code.count("sdot")
