"""Compiles LLVM's intermediate representation to machine code, loads it, and caches object code on disk.

The only file that knows llvmlite, which is loaded when first needed and may be missing. Object code is kept on disk, by
the CPU, LLVM's version, what optimizes, and the text. ORC's linker loads it: unlike MCJIT it ends no process for a
symbol that is missing, and outside functions are given to one module alone (llvm.org/docs/ORCv2.html).
"""

import hashlib
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from ...base.disk_cache import DiskCache
from ...base.errors import DeviceError
from ...model.layout import Precision
from .machine import CPU_CHOICE, CpuTarget, cache_sizes, target_of

OBJECTS = "objects"  # what they are called in the cache on disk
_LIBRARY = "texelflow"
_DEFINED = re.compile(r"^define (?!internal|private)[^@\n]*@([\w.]+)\(", re.MULTILINE)
_PASSES = ("sroa",)  # code is written with registers in mind: -O1 takes as long as making code of it, and gains nothing
_OPTIMIZED_LEVEL = 1  # of all passes, where they are asked for
_LEVEL = 1  # of code generation: 2 adds a scheduler that gains nothing here, and takes long for long blocks


class CompiledCode:
    """Functions in executable memory, which stay there until this object is closed or forgotten."""

    def __init__(
        self, objects: Sequence[bytes], names: Sequence[str], symbols: Mapping[str, int], target: CpuTarget
    ) -> None:
        """Load object files and find functions; `symbols` has addresses of outside functions. Raises DeviceError."""
        llvm = _llvm()
        self.objects = tuple(objects)
        try:
            # Windows' objects are ELF here, which its JITLink does not know
            self._linker = llvm.create_lljit_compiler(
                _machine(target, True), use_jit_link=sys.platform != "win32", suppress_errors=True
            )
            library = llvm.JITLibraryBuilder().add_current_process()
            for each in objects:
                library.add_object_img(each)
            for name, address in symbols.items():
                library.import_symbol(name, address)
            for name in names:
                library.export_symbol(name)
            self._loaded = library.link(self._linker, _LIBRARY)
        except RuntimeError as error:
            raise DeviceError(f"LLVM cannot load what it made: {_one_line(error)}") from None
        self._addresses = {name: int(self._loaded[name]) for name in names}

    def address(self, name: str) -> int:
        """Where a function begins. Raises KeyError for one that is not there."""
        return self._addresses[name]

    def function(self, name: str, prototype: Callable[[int], Any]) -> Any:
        """A function as ctypes calls it, which keeps the code; `prototype` is made by ctypes.CFUNCTYPE."""
        made = prototype(self._addresses[name])
        made.code = self
        return made

    def close(self) -> None:
        """Unload the code; no function of it may run then."""
        self._addresses = {}
        self._loaded.close()
        self._linker.close()


def available() -> str:
    """Why no code can be made for this machine, in words that fit after a colon; empty where it can.

    Raises UsageError for TEXELFLOW_CPU.
    """
    try:
        native_target()
    except DeviceError as error:
        return str(error)
    return ""


def native_target(precision: Precision = "fp32") -> CpuTarget:
    """This machine's kind of CPU, or a narrower one that TEXELFLOW_CPU names, with products in a precision.

    Raises DeviceError where LLVM is missing or the CPU lacks vectors or the precision, UsageError for a kind that it is
    not.
    """
    llvm = _llvm()
    features = dict(llvm.get_host_cpu_features())
    wanted = os.environ.get(CPU_CHOICE, "").strip()
    found = target_of(llvm.get_process_triple(), llvm.get_host_cpu_name(), features, wanted, cache_sizes())
    return found.with_precision(precision)


def compile_module(
    text: str,
    target: CpuTarget,
    symbols: Mapping[str, int] | None = None,
    cache: DiskCache | None = None,
) -> CompiledCode:
    """Machine code of all functions that a text defines, for this machine; object code comes from the cache if it can.

    `symbols` are addresses of functions that the text declares and nobody defines. Raises DeviceError with what LLVM
    says of a text that is none, or where there is no LLVM.
    """
    cache = DiskCache() if cache is None else cache
    key, names = _key(text, target), _DEFINED.findall(text)
    kept = cache.get(OBJECTS, key)
    if kept is not None:
        try:
            return CompiledCode([kept], names, symbols or {}, target)
        except DeviceError:  # whole, but of no use: it is replaced
            pass
    code = object_code(text, target)
    loaded = CompiledCode([code], names, symbols or {}, target)
    cache.put(OBJECTS, key, code)
    return loaded


def compiled_once(
    key: str, write: Callable[[], str], target: CpuTarget, names: Sequence[str], cache: DiskCache | None = None
) -> CompiledCode:
    """The same of a text that is only written if its code is not in the cache, by a key that tells all it depends on.

    Such a text is written without thought of registers and loops: all of LLVM's passes are made over it.
    """
    cache = DiskCache() if cache is None else cache
    kept = cache.get(OBJECTS, key)
    if kept is not None:
        try:
            return CompiledCode([kept], names, {}, target)
        except DeviceError:  # whole, but of no use: it is replaced
            pass
    code = _Maker(target, optimized=True).object_code(write())
    loaded = CompiledCode([code], names, {}, target)
    cache.put(OBJECTS, key, code)
    return loaded


class Compilation:
    """Makes object code of texts, each a module, in a thread beside what writes them: LLVM needs no lock of Python.

    Between calls of LLVM it waits for that lock, some milliseconds each time: texts should be long.
    """

    def __init__(self, target: CpuTarget) -> None:
        """Raises DeviceError where there is no LLVM."""
        self._maker = _Maker(target)
        self._thread = ThreadPoolExecutor(1, "LLVM")
        self._objects: list[Future[bytes]] = []

    def __enter__(self) -> "Compilation":
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown(cancel_futures=True)

    def add(self, text: str) -> None:
        """One more text, whose functions no other one has."""
        self._objects.append(self._thread.submit(self._maker.object_code, text))

    def objects(self) -> list[bytes]:
        """Object files of all texts, in order. Raises DeviceError as object_code does."""
        return [each.result() for each in self._objects]


def object_code(text: str, target: CpuTarget) -> bytes:
    """An object file for a target, which need not be this machine's. Raises DeviceError."""
    return _Maker(target).object_code(text)


def assembly(text: str, target: CpuTarget) -> str:
    """The same as assembly. Raises DeviceError."""
    return _Maker(target).assembly(text)


class _Maker:
    """What makes code of texts for a target, after the passes that pay for what they take."""

    def __init__(self, target: CpuTarget, optimized: bool = False) -> None:
        llvm = self._llvm = _llvm()
        self._machine = _machine(target)
        self._head = f'target datalayout = "{self._machine.target_data}"\ntarget triple = "{self._machine.triple}"\n'
        options = llvm.create_pipeline_tuning_options(speed_level=_OPTIMIZED_LEVEL)
        self._builder = llvm.create_pass_builder(self._machine, options)
        if optimized:
            self._passes = self._builder.getModulePassManager()
            return
        self._passes = llvm.create_new_module_pass_manager()
        for name in _PASSES:
            getattr(self._passes, f"add_{name}_pass")()

    def object_code(self, text: str) -> bytes:
        code: bytes = self._machine.emit_object(self._optimized(text))
        return code

    def assembly(self, text: str) -> str:
        listing: str = self._machine.emit_assembly(self._optimized(text))
        return listing

    def _optimized(self, text: str) -> Any:
        try:
            module = self._llvm.parse_assembly(self._head + text)
        except RuntimeError as error:
            raise DeviceError(f"LLVM does not take what was written for it: {_one_line(error)}") from None
        self._passes.run(module, self._builder)
        return module


def _machine(target: CpuTarget, is_loaded: bool = False) -> Any:
    """LLVM's machine for a target: code that lies within 2 GB of its constants, at any address."""
    llvm = _llvm()
    if target.triple != llvm.get_process_triple():
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    windows = "-elf" if target.triple.startswith("x86_64") and "windows" in target.triple else ""
    made = llvm.Target.from_triple(target.triple + windows)
    return made.create_target_machine(
        target.cpu, target.features, opt=_LEVEL, reloc="pic", codemodel="small", jit=is_loaded
    )


def llvm_version() -> str:
    """LLVM's own. Raises DeviceError where it is missing."""
    return ".".join(str(part) for part in _llvm().llvm_version_info)


def _key(text: str, target: CpuTarget) -> str:
    """What object code depends on."""
    version = llvm_version()
    parts = (target.triple, target.cpu, target.features, version, str(_LEVEL), *_PASSES, text)
    return f"{target.name} LLVM {version} {hashlib.sha256(chr(0).join(parts).encode()).hexdigest()}"


def _llvm() -> Any:
    """llvmlite's binding, ready for this machine. Raises DeviceError where it is missing or broken."""
    try:
        import llvmlite.binding as llvm  # takes 60 ms
    except (ImportError, OSError) as error:
        raise DeviceError(f"no LLVM ({_one_line(error)}): pip install llvmlite gets it") from None
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


def _one_line(error: Exception) -> str:
    """What LLVM complains of, without its picture of the place."""
    return " ".join(str(error).split())[:300]
