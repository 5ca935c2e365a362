"""What a fragment shader is made of once it is read: expressions, statements, functions, and what it is given."""

from dataclasses import dataclass

SCALARS = ("float", "int", "bool")
VECTORS = {
    f"{prefix}vec{size}": (kind, size)
    for prefix, kind in (("", "float"), ("i", "int"), ("b", "bool"))
    for size in (2, 3, 4)
}
MATRICES = {"mat2": 2, "mat3": 3, "mat4": 4}  # columns of as many rows
SAMPLERS = ("sampler2D", "samplerBuffer")


# Expressions ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Literal:
    """A number, or a truth."""

    value: float | int | bool


@dataclass(frozen=True)
class Named:
    """A variable, a parameter, a sampler or what the language gives."""

    name: str


@dataclass(frozen=True)
class Call:
    """A function, or a type that makes a value of its arguments; of an array's type `is_array`."""

    function: str
    arguments: "tuple[Expression, ...]"
    is_array: bool = False


@dataclass(frozen=True)
class Field:
    """Some components of a vector, or a member of a struct."""

    of: "Expression"
    name: str


@dataclass(frozen=True)
class Indexed:
    """An element of an array, a component of a vector or a column of a matrix."""

    of: "Expression"
    index: "Expression"


@dataclass(frozen=True)
class Unary:
    """`operator` is one of - + ! ~."""

    operator: str
    value: "Expression"


@dataclass(frozen=True)
class Binary:
    """Two operands, both of which are computed."""

    operator: str
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True)
class Conditional:
    """condition ? value : other."""

    condition: "Expression"
    value: "Expression"
    other: "Expression"


Expression = Literal | Named | Call | Field | Indexed | Unary | Binary | Conditional


# Statements -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Declaration:
    """A variable; `count` is how many elements an array has, which may be what its value tells."""

    type: str
    name: str
    value: Expression | None
    is_array: bool = False
    count: Expression | None = None


@dataclass(frozen=True)
class Assignment:
    """A value to a variable or a part of one; `operator` is that of `x += y`, or empty."""

    to: Expression
    operator: str
    value: Expression


@dataclass(frozen=True)
class If:
    """`other` is empty where there is no else."""

    condition: Expression
    then: "tuple[ShaderStatement, ...]"
    other: "tuple[ShaderStatement, ...]"


@dataclass(frozen=True)
class For:
    """A loop."""

    start: "tuple[ShaderStatement, ...]"
    condition: Expression
    step: "tuple[ShaderStatement, ...]"
    body: "tuple[ShaderStatement, ...]"


@dataclass(frozen=True)
class Return:
    """The end of a function."""

    value: Expression | None


ShaderStatement = Declaration | Assignment | If | For | Return


# A shader -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Parameter:
    """Of a function; what is given `out` is the caller's variable afterwards."""

    type: str
    name: str
    is_out: bool = False


@dataclass(frozen=True)
class ShaderFunction:
    """A function of a shader."""

    name: str
    type: str
    parameters: tuple[Parameter, ...]
    body: tuple[ShaderStatement, ...]


@dataclass(frozen=True)
class Uniform:
    """What a shader is given for all pixels: numbers, or a sampler; `count` is of an array's elements, 0 for none."""

    type: str
    name: str
    count: Expression | None = None


@dataclass(frozen=True)
class Shader:
    """A fragment shader: what it is given, what it puts out, its constants in their order, and functions by name.

    `structs` have types and names of their members.
    """

    uniforms: tuple[Uniform, ...]
    output: tuple[str, str]  # type and name
    constants: tuple[Declaration, ...]
    structs: dict[str, tuple[tuple[str, str], ...]]
    functions: dict[str, ShaderFunction]
