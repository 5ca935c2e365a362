"""What a shader's tree says of itself: names that are assigned, functions that end early, textures that are read."""

from .shader_tree import (
    SAMPLERS,
    Assignment,
    Call,
    Expression,
    Field,
    Indexed,
    Named,
    Return,
    Shader,
    ShaderFunction,
    ShaderStatement,
)


def _walk(node: object) -> "list[object]":
    """A node and all within it."""
    found = [node]
    if isinstance(node, tuple):
        found = [inner for each in node for inner in _walk(each)]
    elif hasattr(node, "__dataclass_fields__"):
        found += [inner for name in node.__dataclass_fields__ for inner in _walk(getattr(node, name))]
    return found


def _root(to: Expression) -> str:
    while isinstance(to, Field | Indexed):
        to = to.of
    return to.name if isinstance(to, Named) else ""


def changed_names(statements: tuple[ShaderStatement, ...]) -> set[str]:
    """The names that are assigned to."""
    return {_root(node.to) for node in _walk(statements) if isinstance(node, Assignment)}


def assigned_names(function: ShaderFunction, shader: Shader) -> frozenset[str]:
    """The names in a function that are assigned to behind their declaration, or given to what does."""
    found = changed_names(function.body)
    for node in _walk(function.body):
        if isinstance(node, Call) and (inner := shader.functions.get(node.function)):
            pairs = zip(inner.parameters, node.arguments, strict=True)
            found |= {_root(argument) for parameter, argument in pairs if parameter.is_out}
    return frozenset(found)


def returns(statements: tuple[ShaderStatement, ...]) -> bool:
    """Whether a function may end in there."""
    return any(isinstance(node, Return) for node in _walk(statements))


def sampler_names(shader: Shader) -> list[str]:
    """The textures that a shader reads."""
    used = {node.name for function in _reached(shader) for node in _walk(function.body) if isinstance(node, Named)}
    return [each.name for each in shader.uniforms if each.type in SAMPLERS and each.name in used]


def _reached(shader: Shader) -> list[ShaderFunction]:
    """The functions that main calls, and those that these call."""
    found, left = dict[str, ShaderFunction](), ["main"]
    while left:
        name = left.pop()
        if name in found or name not in shader.functions:
            continue
        found[name] = shader.functions[name]
        left += [node.function for node in _walk(found[name].body) if isinstance(node, Call)]
    return list(found.values())
