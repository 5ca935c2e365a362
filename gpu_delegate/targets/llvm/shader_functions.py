"""The functions of the shaders' language that code is written for, by name, said by arithmetic on parts."""

from collections.abc import Callable, Mapping, Sequence

from .shader_parts import Component, ComponentKind, Parts
from .shader_values import ShaderValue, TypeTable, vector_type

Builtin = Callable[[Sequence[ShaderValue]], ShaderValue]


def builtins_of(p: Parts, types: TypeTable) -> Mapping[str, Builtin]:
    """The functions of the language, by name."""

    def by_part(
        make: Callable[..., Component], values: Sequence[ShaderValue], kind: ComponentKind | None = None
    ) -> ShaderValue:
        """Each part of the largest value, with those of others."""
        largest = max(values, key=lambda value: len(value.parts))
        kind = kind or types.kind(largest.type)
        columns = [value.parts * (len(largest.parts) if len(value.parts) == 1 else 1) for value in values]
        kinds = [types.kind(value.type) for value in values]
        parts = [
            make(*(p.converted(part, own, kind) for part, own in zip(each, kinds, strict=True)))
            for each in zip(*columns, strict=True)
        ]
        return ShaderValue(vector_type(kind, len(parts)), tuple(parts))

    def of_kind(make: Callable[..., Component]) -> Builtin:
        def run(values: Sequence[ShaderValue]) -> ShaderValue:
            kinds = {types.kind(value.type) for value in values}
            kind: ComponentKind = "float" if "float" in kinds else "int"
            return by_part(lambda *parts: make(kind, *parts), values, kind)

        return run

    def of_floats(make: Callable[..., Component]) -> Builtin:
        return lambda values: by_part(make, values, "float")

    def modulo(x: Component, y: Component) -> Component:
        return p.binary("-", "float", x, p.binary("*", "float", y, p.floor(p.binary("/", "float", x, y))))

    def blended(x: Component, y: Component, share: Component) -> Component:
        """Exactly one of both for a share of 0 or 1, unlike x + share * (y - x)."""
        rest = p.binary("*", "float", x, p.binary("-", "float", 1.0, share))
        return p.binary("+", "float", rest, p.binary("*", "float", y, share))

    def smooth(low: Component, high: Component, x: Component) -> Component:
        span = p.binary("-", "float", high, low)
        t = p.clamped("float", p.binary("/", "float", p.binary("-", "float", x, low), span), 0.0, 1.0)
        return p.binary("*", "float", p.binary("*", "float", t, t), p.fused(t, -2.0, 3.0))

    def length(value: ShaderValue) -> Component:
        return p.root(p.dot(value.parts, value.parts))

    def distance(values: Sequence[ShaderValue]) -> ShaderValue:
        apart = by_part(lambda a, b: p.binary("-", "float", a, b), values, "float")
        return ShaderValue("float", (length(apart),))

    def cross(values: Sequence[ShaderValue]) -> ShaderValue:
        a, b = (value.parts for value in values)
        times = [
            (p.binary("*", "float", a[i], b[j]), p.binary("*", "float", a[j], b[i]))
            for i, j in ((1, 2), (2, 0), (0, 1))
        ]
        return ShaderValue("vec3", tuple(p.binary("-", "float", *pair) for pair in times))

    return {
        "abs": of_kind(lambda kind, x: p.absolute(kind, x)),
        "min": of_kind(lambda kind, x, y: p.smaller(kind, x, y)),
        "max": of_kind(lambda kind, x, y: p.larger(kind, x, y)),
        "clamp": of_kind(lambda kind, x, low, high: p.clamped(kind, x, low, high)),
        "floor": of_floats(p.floor),
        "fract": of_floats(lambda x: p.binary("-", "float", x, p.floor(x))),
        "mod": of_floats(modulo),
        "mix": of_floats(blended),
        "smoothstep": of_floats(smooth),
        "exp": of_floats(p.exponential),
        "log": of_floats(p.logarithm),
        "pow": of_floats(p.power),
        "sqrt": of_floats(p.root),
        "dot": lambda values: ShaderValue("float", (p.dot(values[0].parts, values[1].parts),)),
        "length": lambda values: ShaderValue("float", (length(values[0]),)),
        "distance": distance,
        "cross": cross,
    }
