"""What shaders compute with: values of all types by their components, and variables that hold them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from ...base.errors import UnsupportedError
from ...shading.shader_tree import MATRICES, VECTORS
from .ir import Register
from .shader_parts import Component, ComponentKind

_KINDS: Mapping[str, ComponentKind] = MappingProxyType({"float": "float", "int": "int", "bool": "bool"})
_COMPONENTS = ("xyzw", "rgba", "stpq")


@dataclass(frozen=True)
class ShaderValue:
    """A type's name, which ends with [] for arrays, and a part for each component, members and columns in turn."""

    type: str
    parts: tuple[Component, ...]


@dataclass(frozen=True)
class ShaderVariable:
    """What is assigned: for each component where it is kept, its kind, and how many lanes that has."""

    type: str
    kept: tuple[Register, ...]
    kinds: tuple[ComponentKind, ...]
    lanes: tuple[int, ...]
    key: tuple[object, ...]  # which one it is


class TypeTable:
    """What types are made of, structs of one shader included."""

    def __init__(self, structs: Mapping[str, Sequence[tuple[str, str]]]) -> None:
        self._structs = structs

    def kinds(self, type: str) -> tuple[ComponentKind, ...]:
        """Of the components of a type that is no array. Raises UnsupportedError for one that is not known."""
        if type in _KINDS:
            return (_KINDS[type],)
        if type in VECTORS:
            kind, size = VECTORS[type]
            return self.kinds(kind) * size
        if type in MATRICES:
            return self.kinds("float") * MATRICES[type] ** 2
        if type in self._structs:
            return tuple(kind for member, _ in self._structs[type] for kind in self.kinds(member))
        raise UnsupportedError(f"a shader's type {type} is not known here")

    def kind(self, type: str) -> ComponentKind:
        """Of all components: of an array, those of its elements."""
        return self.kinds(type.removesuffix("[]"))[0]

    def places(self, type: str, field: str) -> tuple[str, tuple[int, ...]]:
        """The type of a field of a vector or struct, and which components it has. Raises UnsupportedError."""
        if type in self._structs:
            first = 0
            for member, name in self._structs[type]:
                size = len(self.kinds(member))
                if name == field:
                    return member, tuple(range(first, first + size))
                first += size
        elif type in VECTORS:
            kind, size = VECTORS[type]
            for names in _COMPONENTS:
                if all(letter in names[:size] for letter in field):
                    return vector_type(kind, len(field)), tuple(names.index(letter) for letter in field)
        raise UnsupportedError(f"a shader's type {type} has no {field}")

    def element(self, type: str) -> tuple[str, int]:
        """The type of what an index finds, and how many components that has."""
        if type.endswith("[]"):
            inner = type.removesuffix("[]")
            return inner, len(self.kinds(inner))
        if type in MATRICES:
            return f"vec{MATRICES[type]}", MATRICES[type]
        kind, _ = VECTORS[type]
        return kind, 1


def vector_type(kind: str, size: int) -> str:
    """The name of a type of so many components."""
    if size == 1:
        return kind
    return {"float": "", "int": "i", "bool": "b"}[kind] + f"vec{size}"
