"""Compiles several graphs at once to the CPU's own code, since LLVM takes long to begin."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from tests.helpers.case_group import Case
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.targets.llvm.compiler import CompiledCode, native_target, object_code
from texelflow.gpu_delegate.targets.llvm.ir import Module
from texelflow.gpu_delegate.targets.llvm.machine import CpuTarget
from texelflow.gpu_delegate.targets.llvm.native_program import NativeProgram, compile_native
from texelflow.gpu_delegate.targets.llvm.native_runtime import CheckedNetwork
from texelflow.gpu_delegate.targets.llvm.pool import WorkerPool

Key = TypeVar("Key")


def native_networks(
    graphs: Mapping[Key, Graph], target: CpuTarget | None = None, fuse: bool = True, keep_all: bool = False
) -> dict[Key, CheckedNetwork]:
    """A network of each graph, run by one thread."""
    target, module = target or native_target(), Module()
    programs = {key: compile_native(graph, target, fuse, keep_all, module) for key, graph in graphs.items()}
    code, pool = code_of(module, programs.values(), target), WorkerPool(target, 1)
    return {key: CheckedNetwork(program, code, pool) for key, program in programs.items()}


def native_cases(cases: Mapping[str, Case], lanes: int) -> dict[str, CheckedNetwork]:
    """A network of each case, by name, for vectors of so many lanes."""
    return native_networks({name: case.graph() for name, case in cases.items()}, target_of(lanes))


def target_of(lanes: int) -> CpuTarget:
    """Vectors of so many lanes, with the registers of such CPUs: of what this machine lacks LLVM makes several."""
    return replace(native_target(), lanes=lanes, registers=16 if lanes == 8 else 32)


def code_of(module: Module, programs: Iterable[NativeProgram], target: CpuTarget) -> CompiledCode:
    """What the functions of some programs are, compiled anew."""
    names = sorted({kernel.symbol for program in programs for kernel in program.kernels})
    return CompiledCode([object_code(module.text, target)], names, {}, target)
