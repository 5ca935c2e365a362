"""Fragment shaders as steps for the pool of threads: code for rows of a picture, and the words that it reads.

Code depends on the shader's text with its parameters and on how the pictures lie that it reads and writes. Addresses,
sizes and uniforms are words in memory, so that the same code draws any of them.
"""

import hashlib
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

from ...base.disk_cache import DiskCache
from ...base.errors import UnsupportedError
from ...shading.shader_facts import sampler_names
from ...shading.shader_reader import read_shader
from ...shading.shader_tree import SAMPLERS, Shader, Uniform
from .compiler import compiled_once, llvm_version
from .ir import FLOAT, I32, I64, POINTER, Function, Module, Register, integer
from .loading import compiling_files
from .machine import CpuTarget
from .sampling_tables import WORD_BYTES
from .shader_code import ShaderCode, VaryingError
from .shader_images import BoundImage, ImageCode, ImageForm
from .shader_parts import Component, Parts
from .shader_values import ShaderValue, TypeTable

_NAME = "shader"


@dataclass(frozen=True)
class ImageWords:
    """A picture in memory, as code is told of it."""

    address: int
    row_bytes: int
    plane_bytes: int
    width: int
    height: int

    def words(self) -> bytes:
        return struct.pack("<5q", self.address, self.row_bytes, self.plane_bytes, self.width, self.height)


UniformNumbers = Sequence[float] | Sequence[int]


class ReadShader:
    """A shader that was read: what it is to be given."""

    def __init__(self, text: str) -> None:
        """Raises UnsupportedError for what is not understood."""
        self.text, self.tree = text, read_shader(text)
        self.samplers = tuple(sampler_names(self.tree))
        self.uniforms = tuple(each for each in self.tree.uniforms if each.type not in SAMPLERS)


class ShaderKernel:
    """The code of a shader for pictures of certain forms."""

    def __init__(
        self, shader: ReadShader, forms: Mapping[str, ImageForm], output: ImageForm, target: CpuTarget, version: str,
        cache: DiskCache | None = None, over: bool = False,
    ) -> None:  # fmt: skip
        """`forms` are those of textures, by name; `version` is shader_code_version().

        over: colors are premultiplied, and laid over what is there, RGBA. Raises DeviceError, UnsupportedError.
        """
        self.shader = shader
        facts = (shader.text, sorted(forms.items(), key=itemgetter(0)), output, target, version, over)
        key = f"shader {hashlib.sha256(repr(facts).encode()).hexdigest()}"  # writing the text takes longer than loading
        self._code = compiled_once(
            key, lambda: written_shader(shader.tree, forms, output, target, over), target, (_NAME,), cache
        )
        self.address = self._code.address(_NAME)

    def words(
        self,
        output: ImageWords,
        images: Mapping[str, ImageWords],
        uniforms: Mapping[str, UniformNumbers],
        first_column: int = 0,
    ) -> bytes:
        """What the code reads to draw once, from a column to the output's width; uniforms that nobody has set are 0.

        Columns other than the first ones can be left out where colors are laid over others.
        """
        found = [output.words(), _word("int", first_column), *(images[name].words() for name in self.shader.samplers)]
        for uniform in self.shader.uniforms:
            kinds = _kinds(self.shader.tree, uniform)
            given = uniforms.get(uniform.name, ())
            padded = [*given, *[0] * (len(kinds) - len(given))]
            found += [_word(kind, value) for kind, value in zip(kinds, padded, strict=True)]
        return b"".join(found)


def shader_code_version() -> str:
    """What code depends on besides shader and target, while both are worked on: LLVM, and the files that write it."""
    return hashlib.sha256(repr((llvm_version(), compiling_files())).encode()).hexdigest()


def written_shader(
    shader: Shader, forms: Mapping[str, ImageForm], output: ImageForm, target: CpuTarget, over: bool = False
) -> str:
    """The module of a shader, whose function has the signature of all kernels. Raises UnsupportedError."""
    varying: frozenset[tuple[object, ...]] = frozenset()
    while True:
        module = Module()
        try:
            _write(module, shader, forms, output, target, varying, over)
            return module.text
        except VaryingError as error:
            varying |= {error.key}


def _write(
    module: Module,
    shader: Shader,
    forms: Mapping[str, ImageForm],
    output: ImageForm,
    target: CpuTarget,
    varying: frozenset[tuple[object, ...]],
    over: bool,
) -> None:
    lanes = target.lanes
    parameters = [(POINTER, "tensors"), (POINTER, "weights"), *((I32, each) for each in ("y0", "y1", "z0", "z1"))]
    f = module.function(_NAME, parameters)
    words, _, first, last, *_ = f.parameters
    reader = _Words(f, words)
    drawn, left = reader.image(output), reader.whole()
    given: dict[str, ShaderValue | BoundImage] = {name: reader.image(forms[name]) for name in sampler_names(shader)}
    for uniform in shader.uniforms:
        if uniform.type not in SAMPLERS:
            kinds = _kinds(shader, uniform)
            given[uniform.name] = ShaderValue(
                uniform.type + ("[]" if uniform.count else ""), tuple(map(reader.number, kinds))
            )
    images = ImageCode(Parts(f, lanes), target)
    most = images.p.register(images.p.larger("int", 0, images.p.binary("-", "int", drawn.width, lanes)), "int", 1)
    with f.loop(first, last) as y, f.loop(left if over else integer(0), drawn.width, lanes) as block:
        column = images.p.register(images.p.smaller("int", block, most), "int", 1)
        value = ShaderCode(shader, images, given, varying).pixels(column, y)
        if over:
            images.lay_over(drawn, block, column, y, value.parts)
        else:
            images.store(drawn, column, y, value.parts)
    f.give_back()


class _Words:
    """Reads words at the beginning of a function."""

    def __init__(self, function: Function, table: Register) -> None:
        self._f, self._table, self._next = function, table, 0

    def _address(self) -> Register:
        self._next += 1
        return self._f.at(self._table, self._next - 1, I64)

    def image(self, form: ImageForm) -> BoundImage:
        start = self._f.load(POINTER, self._address(), WORD_BYTES)
        row, plane = (self._f.load(I64, self._address(), WORD_BYTES) for _ in range(2))
        width, height = (self._f.load(I32, self._address(), WORD_BYTES) for _ in range(2))
        return BoundImage(form, start, row, plane, width, height)

    def whole(self) -> Register:
        return self._f.load(I32, self._address(), WORD_BYTES)

    def number(self, kind: str) -> Component:
        found = self._f.load(FLOAT if kind == "float" else I32, self._address(), WORD_BYTES)
        return self._f.compare("icmp ne", found, integer(0)) if kind == "bool" else found


def _kinds(shader: Shader, uniform: Uniform) -> tuple[str, ...]:
    """The kind of each number of a uniform. Raises UnsupportedError for an array of unknown length."""
    kinds = TypeTable(shader.structs).kinds(uniform.type)
    return kinds * _count(shader, uniform) if uniform.count else kinds


def _count(shader: Shader, uniform: Uniform) -> int:
    """The elements of an array, whose number the shader has as a constant expression."""
    module = Module()
    f = module.function("constant", [])
    code = ShaderCode(shader, ImageCode(Parts(f, 1), CpuTarget("neon", 1, 1, "", "")), {}, frozenset())
    assert uniform.count is not None
    count = code.constant(uniform.count)
    if not 0 < count <= 4096:
        raise UnsupportedError(f"a shader's {uniform.name} has {count} elements")
    return count


def _word(kind: str, value: float | int) -> bytes:
    return struct.pack("<fi", float(value), 0) if kind == "float" else struct.pack("<q", int(value))
