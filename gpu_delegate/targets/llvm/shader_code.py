"""Writes code of a fragment shader: what it computes for a vector of pixels that lie side by side in a row.

The shader's tree is gone through once; functions are written where they are called, loops of a few known rounds as
often as they run. Where pixels go different ways all ways are written, and values kept by masks (Pharr and Mark,
"ispc: A SPMD Compiler for High-Performance CPU Programming"). What all pixels
have in common stays a single number. A whole number is taken for such a one until something else is assigned to it:
then all is written anew with that variable as a vector.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...base.errors import UnsupportedError
from ...shading.shader_facts import assigned_names, changed_names, returns
from ...shading.shader_tree import (
    MATRICES,
    SCALARS,
    VECTORS,
    Assignment,
    Binary,
    Call,
    Conditional,
    Declaration,
    Expression,
    Field,
    For,
    If,
    Indexed,
    Literal,
    Named,
    Return,
    Shader,
    ShaderFunction,
    ShaderStatement,
    Unary,
)
from . import ir
from .ir import FLOAT, I32, Register, integer
from .shader_functions import builtins_of
from .shader_images import BoundImage, ImageCode
from .shader_parts import Component, ComponentKind, Parts, is_uniform
from .shader_values import ShaderValue, ShaderVariable, TypeTable, vector_type

_MOST_UNROLLED = 1500  # nodes of the tree, in all rounds of a loop
_FETCH_NODES = 25  # that a texture's pixel counts as
_ARITHMETIC = ("+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>")
_COMPARISONS = ("<", ">", "<=", ">=", "==", "!=")
_TRUTHS = ("&&", "||", "^^")
_LARGE = (1 << 31) - 1


class VaryingError(Exception):
    """A variable that was taken for the same in all pixels is not."""

    def __init__(self, key: tuple[object, ...]) -> None:
        super().__init__(str(key))
        self.key = key


@dataclass
class _Scope:
    """What names mean in a function that is being written, and what it has given back so far."""

    path: tuple[int, ...]  # of calls, from main on
    assigned: frozenset[str]
    names: dict[str, ShaderValue | ShaderVariable | str]  # a sampler is its name
    live: Component = True  # which pixels have not returned
    returned: list[tuple[Component, ShaderValue]] = field(default_factory=list)


Given = Mapping[str, ShaderValue | BoundImage]


class ShaderCode:
    """Writes one shader's code into a function."""

    def __init__(self, shader: Shader, images: ImageCode, given: Given, varying: frozenset[tuple[object, ...]]) -> None:
        """`given` has uniforms and samplers by name; `varying` are variables that are known to differ by pixel."""
        self._shader, self._images, self._given, self._varying = shader, images, given, varying
        self.p: Parts = images.p
        self.f = images.f
        self.types = TypeTable(shader.structs)
        self._scope = _Scope((), frozenset(), {})
        self._mask: Component = True
        self._whole = dict[str, Register]()  # of gl_FragCoord: the pixel's column and row
        self._builtins = builtins_of(self.p, self.types)

    def pixels(self, column: Register, row: Register) -> ShaderValue:
        """What the shader puts out for the pixels from a column on. Raises UnsupportedError, VaryingError."""
        names: dict[str, ShaderValue | ShaderVariable | str] = {}
        for name, value in self._given.items():
            names[name] = name if isinstance(value, BoundImage) else value
        names["gl_FragCoord"] = self._coordinates(column, row)
        type, output = self._shader.output
        main = self._shader.functions["main"]
        self._scope = _Scope((), assigned_names(main, self._shader), names)
        for constant in self._shader.constants:
            self._declare(constant)
        self._scope.names[output] = self._variable(type, output, None)
        self._run(main.body)
        found = self._read(Named(output))
        return ShaderValue(type, found.parts)

    def _coordinates(self, column: Register, row: Register) -> ShaderValue:
        x = self.f.binary(
            "add", self.f.splat(column, self.p.lanes), ir.constants([integer(n) for n in range(self.p.lanes)])
        )
        parts = list[Component]()
        for place in (x, row):
            middle = self.p.binary("+", "float", self.p.converted(place, "int", "float"), 0.5)
            assert isinstance(middle, Register)
            self._whole[middle.text] = place
            parts.append(middle)
        return ShaderValue("vec4", (*parts, 0.0, 1.0))

    # Names ------------------------------------------------------------------------------------------------------------

    def _find(self, name: str) -> ShaderValue | ShaderVariable | str:
        found = self._scope.names.get(name)
        if found is None:
            raise UnsupportedError(f"a shader's {name} is not known")
        return found

    def _read(self, name: Named) -> ShaderValue:
        found = self._find(name.name)
        if isinstance(found, str):
            return ShaderValue(found, ())
        if isinstance(found, ShaderValue):
            return found
        return ShaderValue(found.type, tuple(self._load(found, place) for place in range(len(found.kept))))

    def _load(self, variable: ShaderVariable, place: int) -> Register:
        kind = ir.vector({"float": FLOAT, "int": I32, "bool": ir.I1}[variable.kinds[place]], variable.lanes[place])
        return self.f.load(kind, variable.kept[place], 4)

    def _variable(self, type: str, name: str, value: ShaderValue | None) -> ShaderVariable:
        """A new variable, with a value or zeros."""
        count = len(value.parts) if value else len(self.types.kinds(type))
        inner = self.types.kinds(type.removesuffix("[]"))
        kinds = (inner * count)[:count]
        key = (*self._scope.path, name)
        lanes = tuple(
            self.p.lanes if kind == "float" or (*key, place) in self._varying else 1 for place, kind in enumerate(kinds)
        )
        types = [
            ir.vector({"float": FLOAT, "int": I32, "bool": ir.I1}[kind], n)
            for kind, n in zip(kinds, lanes, strict=True)
        ]
        variable = ShaderVariable(type, tuple(map(self.f.reserve, types)), kinds, lanes, key)
        for place in range(count):
            self._store(variable, place, value.parts[place] if value else 0)
        return variable

    def _store(self, variable: ShaderVariable, place: int, part: Component) -> None:
        if variable.lanes[place] == 1 and not is_uniform(part):
            raise VaryingError((*variable.key, place))
        register = self.p.register(part, variable.kinds[place], variable.lanes[place])
        self.f.store(register, variable.kept[place], 4)

    def _change(self, variable: ShaderVariable, place: int, part: Component) -> None:
        """Assign where the mask holds."""
        active = self._active()
        if active is not True:
            part = self.p.chosen(active, variable.kinds[place], part, self._load(variable, place))
        self._store(variable, place, part)

    def _active(self) -> Component:
        return self.p.binary("&&", "bool", self._mask, self._scope.live)

    # Statements -------------------------------------------------------------------------------------------------------

    def _run(self, statements: Sequence[ShaderStatement]) -> None:
        for statement in statements:
            if self._scope.live is False:
                return
            if isinstance(statement, Declaration):
                self._declare(statement)
            elif isinstance(statement, Assignment):
                self._assign(statement)
            elif isinstance(statement, If):
                self._branch(statement)
            elif isinstance(statement, For):
                self._loop(statement)
            else:
                self._return(statement)

    def _declare(self, declared: Declaration) -> None:
        type = declared.type + ("[]" if declared.is_array else "")
        value = self._converted(self._value(declared.value), type) if declared.value else None
        if declared.name in self._scope.assigned or value is None:
            self._scope.names[declared.name] = self._variable(type, declared.name, value)
        else:
            self._scope.names[declared.name] = value

    def _assign(self, change: Assignment) -> None:
        value = self._value(change.value)
        if isinstance(change.to, Named) and not change.to.name:
            return
        if change.operator:
            value = self._operated(change.operator, self._value(change.to), value)
        self._give(change.to, value)

    def _give(self, to: Expression, value: ShaderValue) -> None:
        """Assign a value to a variable or some components of it."""
        variable, type, places = self._target(to)
        value = self._converted(value, type)
        for place, part in zip(places, value.parts, strict=True):
            self._change(variable, place, part)

    def _target(self, to: Expression) -> tuple[ShaderVariable, str, tuple[int, ...]]:
        if isinstance(to, Named):
            found = self._find(to.name)
            if not isinstance(found, ShaderVariable):
                raise UnsupportedError(f"a shader assigns to {to.name}, which is no variable")
            return found, found.type, tuple(range(len(found.kept)))
        if isinstance(to, Field):
            variable, type, places = self._target(to.of)
            inner, chosen = self.types.places(type, to.name)
            return variable, inner, tuple(places[place] for place in chosen)
        if isinstance(to, Indexed):
            variable, type, places = self._target(to.of)
            inner, size = self.types.element(type)
            (index,) = self._value(to.index).parts
            if isinstance(index, Register):
                raise UnsupportedError("a shader assigns to an element whose index is not known")
            first = int(index) * size
            return variable, inner, places[first : first + size]
        raise UnsupportedError("a shader assigns to what is no variable")

    def _branch(self, statement: If) -> None:
        (condition,) = self._value(statement.condition).parts
        if not isinstance(condition, Register):
            self._run(statement.then if condition else statement.other)
            return
        if is_uniform(condition) and not returns(statement.then) and not returns(statement.other):
            with self.f.either(condition) as otherwise:
                self._run(statement.then)
                otherwise.begin()
                self._run(statement.other)
            return
        outer = self._mask
        for holds, body in ((condition, statement.then), (self.p.negated("bool", condition), statement.other)):
            if not body:
                continue
            self._mask = self.p.binary("&&", "bool", outer, holds)
            if returns(body) or self._cost(body) < _FETCH_NODES:
                self._run(body)
            else:
                any_active = self.p.any(self._active())
                with self.f.when(self.p.register(any_active, "bool", 1)):
                    self._run(body)
        self._mask = outer

    def _return(self, statement: Return) -> None:
        scope = self._scope
        value = self._value(statement.value) if statement.value else ShaderValue("void", ())
        active = self._active() if self._mask is not True else scope.live
        scope.returned.append((active, value))
        scope.live = self.p.binary("&&", "bool", scope.live, self.p.negated("bool", self._mask))

    # Loops ------------------------------------------------------------------------------------------------------------

    def _loop(self, loop: For) -> None:
        counter, first, last, step = self._counted(loop)
        if not isinstance(first, Register) and not isinstance(last, Register):
            rounds = range(int(first), int(last) + (1 if step > 0 else -1), step)
            if len(rounds) * self._cost(loop.body) <= _MOST_UNROLLED or step < 0:
                for known in rounds:
                    self._round(loop, counter, known)
                return
        if step < 0:
            raise UnsupportedError("a shader's loop counts down from a number that is not known")
        if step > 1 and not is_uniform(first):
            raise UnsupportedError("a shader's loop counts by more than one from a number of each pixel's own")
        outer = self._mask
        active, differs = self._active(), not (is_uniform(first) and is_uniform(last))
        if differs:
            least = self.p.least(first, active, _LARGE - 1)
            most = self.p.most(last, active, -_LARGE)
        else:
            least, most = first, last
        stop = self.p.register(self.p.binary("+", "int", most, 1), "int", 1)
        with self.f.loop(self.p.register(least, "int", 1), stop, step) as index:
            if differs:
                inside = self.p.binary(
                    "&&", "bool", self.p.compare("<=", "int", first, index), self.p.compare("<=", "int", index, last)
                )
                self._mask = self.p.binary("&&", "bool", outer, inside)
            self._round(loop, counter, index)
        self._mask = outer

    def _round(self, loop: For, counter: str, index: Component) -> None:
        self._scope.names[counter] = ShaderValue("int", (index,))
        self._run(loop.body)
        self._run(loop.step[1:])

    def _counted(self, loop: For) -> tuple[str, Component, Component, int]:
        """The counter of a loop, its first and last value, and by how much it grows. Raises UnsupportedError."""
        declared, condition, *others = loop.start[0], loop.condition, *loop.step
        change = others[0]
        counts = (
            len(loop.start) == 1
            and isinstance(declared, Declaration)
            and declared.value is not None
            and isinstance(condition, Binary)
            and condition.left == Named(declared.name)
            and condition.operator in ("<", "<=", ">", ">=")
            and isinstance(change, Assignment)
            and change.to == Named(declared.name)
            and change.operator in ("+", "-")
            and declared.name not in changed_names(loop.body)
        )
        if not counts or returns(loop.body):
            raise UnsupportedError("a shader has a loop that does not count from one number to another")
        assert isinstance(declared, Declaration)
        assert declared.value is not None
        assert isinstance(condition, Binary)
        assert isinstance(change, Assignment)
        (first,) = self._value(declared.value).parts
        (last,) = self._value(condition.right).parts
        (by,) = self._value(change.value).parts
        if isinstance(by, Register):
            raise UnsupportedError("a shader's loop counts by steps that are not known")
        if condition.operator in ("<", ">"):
            last = self.p.binary("-" if condition.operator == "<" else "+", "int", last, 1)
        return declared.name, first, last, int(by) if change.operator == "+" else -int(by)

    def _cost(self, body: object) -> int:
        """Nodes of the tree, with those of functions that are called."""
        if isinstance(body, tuple):
            return sum(map(self._cost, body))
        if isinstance(body, For):
            counted = self._known_rounds(body)
            return counted * self._cost(body.body)
        if isinstance(body, Call):
            inner = self._shader.functions.get(body.function)
            own = self._cost(inner.body) if inner else _FETCH_NODES if body.function.startswith("tex") else 1
            return own + self._cost(body.arguments)
        if hasattr(body, "__dataclass_fields__"):
            return 1 + sum(self._cost(getattr(body, name)) for name in body.__dataclass_fields__)
        return 0

    def _known_rounds(self, loop: For) -> int:
        """How often a loop runs, as far as the shader's constants tell: 1 where they do not."""
        declared, condition = loop.start[0], loop.condition
        if not (isinstance(declared, Declaration) and declared.value and isinstance(condition, Binary)):
            return 1
        try:
            first, last = self.constant(declared.value), self.constant(condition.right)
        except UnsupportedError:
            return 1
        return max(1, abs(last - first) + (condition.operator in ("<=", ">=")))

    def constant(self, expression: Expression) -> int:
        """A whole number that stands in the shader. Raises UnsupportedError for what is none."""
        if isinstance(expression, Literal):
            return int(expression.value)
        if isinstance(expression, Unary) and expression.operator == "-":
            return -self.constant(expression.value)
        if isinstance(expression, Binary) and expression.operator in ("+", "-"):
            other = self.constant(expression.right)
            return self.constant(expression.left) + (other if expression.operator == "+" else -other)
        if isinstance(expression, Named):
            found = self._scope.names.get(expression.name)
            if isinstance(found, ShaderValue) and len(found.parts) == 1 and not isinstance(found.parts[0], Register):
                return int(found.parts[0])
        raise UnsupportedError("not known")

    # Expressions ------------------------------------------------------------------------------------------------------

    def _value(self, expression: Expression) -> ShaderValue:
        if isinstance(expression, Literal):
            kind = type(expression.value).__name__
            return ShaderValue(kind, (expression.value,))
        if isinstance(expression, Named):
            return self._read(expression)
        if isinstance(expression, Field):
            return self._field(expression)
        if isinstance(expression, Indexed):
            return self._item(expression)
        if isinstance(expression, Unary):
            return self._unary(expression)
        if isinstance(expression, Binary):
            return self._operated(expression.operator, self._value(expression.left), self._value(expression.right))
        if isinstance(expression, Conditional):
            return self._choice(expression)
        return self._call(expression)

    def _field(self, expression: Field) -> ShaderValue:
        of = expression.of
        if isinstance(of, Call) and of.function == "texelFetch":  # other channels are not read
            type, places = self.types.places("vec4", expression.name)
            found = self._texel(of, sorted(set(places)))
            return ShaderValue(type, tuple(found[place] for place in places))
        if isinstance(of, Named) and isinstance(held := self._find(of.name), ShaderVariable):
            type, places = self.types.places(held.type, expression.name)
            return ShaderValue(type, tuple(self._load(held, place) for place in places))
        value = self._value(of)
        type, places = self.types.places(value.type, expression.name)
        return ShaderValue(type, tuple(value.parts[place] for place in places))

    def _item(self, expression: Indexed) -> ShaderValue:
        value, (index,) = self._value(expression.of), self._value(expression.index).parts
        type, size = self.types.element(value.type)
        if not isinstance(index, Register):
            return ShaderValue(type, value.parts[int(index) * size : (int(index) + 1) * size])
        found = list(value.parts[:size])  # few enough to be compared
        kind = self.types.kind(value.type)
        for nth in range(1, len(value.parts) // size):
            is_it = self.p.compare("==", "int", index, nth)
            for place in range(size):
                found[place] = self.p.chosen(is_it, kind, value.parts[nth * size + place], found[place])
        return ShaderValue(type, tuple(found))

    def _unary(self, expression: Unary) -> ShaderValue:
        value = self._value(expression.value)
        kind = self.types.kind(value.type)
        if expression.operator == "+":
            return value
        if expression.operator == "~":
            return ShaderValue(value.type, tuple(self.p.binary("^", kind, part, -1) for part in value.parts))
        return ShaderValue(value.type, tuple(self.p.negated(kind, part) for part in value.parts))

    def _choice(self, expression: Conditional) -> ShaderValue:
        (condition,) = self._value(expression.condition).parts
        if not isinstance(condition, Register):
            return self._value(expression.value if condition else expression.other)
        value, other = self._value(expression.value), self._value(expression.other)
        value, other = self._alike(value, other)
        kind = self.types.kind(value.type)
        pairs = zip(value.parts, other.parts, strict=True)
        return ShaderValue(value.type, tuple(self.p.chosen(condition, kind, *pair) for pair in pairs))

    def _alike(self, left: ShaderValue, right: ShaderValue) -> tuple[ShaderValue, ShaderValue]:
        """Both of the kind of one, and of the size of the larger one."""
        kinds = self.types.kind(left.type), self.types.kind(right.type)
        kind: ComponentKind = "float" if "float" in kinds else kinds[0]
        size = max(len(left.parts), len(right.parts))
        type = vector_type(kind, size) if left.type not in MATRICES and right.type not in MATRICES else left.type
        return self._spread(left, type, kind, size), self._spread(right, type, kind, size)

    def _spread(self, value: ShaderValue, type: str, kind: ComponentKind, size: int) -> ShaderValue:
        parts = tuple(self.p.converted(part, self.types.kind(value.type), kind) for part in value.parts)
        return ShaderValue(type, parts * size if len(parts) == 1 else parts)

    def _operated(self, operator: str, left: ShaderValue, right: ShaderValue) -> ShaderValue:
        if operator == "*" and (left.type in MATRICES or right.type in MATRICES):
            return self._product(left, right)
        left, right = self._alike(left, right)
        kind = self.types.kind(left.type)
        pairs = list(zip(left.parts, right.parts, strict=True))
        if operator in _COMPARISONS:
            found: Component = operator != "!="
            for pair in pairs:
                word = "||" if operator == "!=" else "&&"
                found = self.p.binary(word, "bool", found, self.p.compare(operator, kind, *pair))
            return ShaderValue("bool", (found,))
        if operator in _TRUTHS or operator in _ARITHMETIC:
            return ShaderValue(left.type, tuple(self.p.binary(operator, kind, *pair) for pair in pairs))
        raise UnsupportedError(f"a shader's operator {operator} is not known here")

    def _product(self, left: ShaderValue, right: ShaderValue) -> ShaderValue:
        """A matrix times a vector."""
        size = MATRICES.get(left.type, 0)
        if not size or len(right.parts) != size:
            raise UnsupportedError(f"a shader multiplies {left.type} by {right.type}")
        rows = [ShaderValue(right.type, left.parts[row::size]) for row in range(size)]
        return ShaderValue(right.type, tuple(self.p.dot(row.parts, right.parts) for row in rows))

    def _converted(self, value: ShaderValue, type: str) -> ShaderValue:
        """A value as a variable of a type takes it: whole numbers become floats."""
        if type.endswith("[]"):
            return ShaderValue(type, value.parts)
        kinds = self.types.kinds(type)
        if len(kinds) != len(value.parts):
            raise UnsupportedError(f"a shader gives a {value.type} to a {type}")
        if type == value.type or value.type not in (*SCALARS, *VECTORS):
            return ShaderValue(type, value.parts)
        kind = self.types.kind(value.type)
        return ShaderValue(type, tuple(self.p.converted(p, kind, to) for p, to in zip(value.parts, kinds, strict=True)))

    # Calls ------------------------------------------------------------------------------------------------------------

    def _call(self, call: Call) -> ShaderValue:
        name = call.function
        if name in self._shader.functions:
            return self._inlined(call, self._shader.functions[name])
        if name == "texelFetch":
            found = self._texel(call, range(4))
            return ShaderValue("vec4", tuple(found[channel] for channel in range(4)))
        if name == "textureSize":
            image = self._image(call.arguments[0])
            return ShaderValue("ivec2", (image.width, image.height))
        if name == "textureLod":
            return self._interpolated(call)
        values = [self._value(each) for each in call.arguments]
        if call.is_array:
            return ShaderValue(f"{name}[]", tuple(part for value in values for part in value.parts))
        if name in self._builtins:
            return self._builtins[name](values)
        return self._made(name, values)

    def _made(self, type: str, values: Sequence[ShaderValue]) -> ShaderValue:
        """A value of a type, made of others. Raises UnsupportedError for a function that is not known."""
        kinds = self.types.kinds(type)
        parts = [(part, self.types.kinds(value.type)[n]) for value in values for n, part in enumerate(value.parts)]
        if len(parts) == 1 and type in MATRICES:
            size = MATRICES[type]
            parts = [parts[0] if n % (size + 1) == 0 else (0.0, "float") for n in range(size * size)]
        elif len(parts) == 1:
            parts = parts * len(kinds)
        made = list[Component]()
        for (part, kind), to in zip(parts, kinds, strict=False):
            whole = self._whole.get(part.text) if isinstance(part, Register) and to == "int" else None
            made.append(whole or self.p.converted(part, kind, to))
        return ShaderValue(type, tuple(made))

    def _inlined(self, call: Call, function: ShaderFunction) -> ShaderValue:
        outer, mask = self._scope, self._mask
        arguments = [
            None if each.is_out else self._given_to(value)
            for each, value in zip(function.parameters, call.arguments, strict=True)
        ]
        assigned = assigned_names(function, self._shader)
        scope = _Scope((*outer.path, id(call)), assigned, {**self._globals(outer)})
        self._scope, self._mask = scope, self._active()
        inner_mask = self._mask
        for parameter, value in zip(function.parameters, arguments, strict=True):
            if isinstance(value, str):
                scope.names[parameter.name] = value
                continue
            taken = self._converted(value, parameter.type) if value else None
            is_variable = parameter.is_out or parameter.name in assigned
            scope.names[parameter.name] = (
                self._variable(parameter.type, parameter.name, taken) if is_variable or taken is None else taken
            )
        self._mask = inner_mask
        self._run(function.body)
        results = [self._read(Named(each.name)) if each.is_out else None for each in function.parameters]
        self._scope, self._mask = outer, mask
        for result, to in zip(results, call.arguments, strict=True):
            if result:
                self._give(to, result)
        return self._result(function, scope.returned)

    def _globals(self, scope: _Scope) -> dict[str, ShaderValue | ShaderVariable | str]:
        """What all functions see: constants, uniforms and samplers."""
        known = {*self._given, "gl_FragCoord", *(each.name for each in self._shader.constants)}
        return {name: value for name, value in scope.names.items() if name in known}

    def _given_to(self, argument: Expression) -> ShaderValue | str:
        if isinstance(argument, Named) and isinstance(found := self._find(argument.name), str):
            return found
        return self._value(argument)

    def _result(self, function: ShaderFunction, returned: Sequence[tuple[Component, ShaderValue]]) -> ShaderValue:
        if function.type == "void":
            return ShaderValue("void", ())
        if not returned:
            raise UnsupportedError(f"a shader's {function.name} gives nothing back")
        kinds = self.types.kinds(function.type)
        parts = self._converted(returned[-1][1], function.type).parts
        for active, value in reversed(returned[:-1]):
            pairs = zip(self._converted(value, function.type).parts, parts, kinds, strict=True)
            parts = tuple(self.p.chosen(active, kind, part, other) for part, other, kind in pairs)
        return ShaderValue(function.type, parts)

    # Textures ---------------------------------------------------------------------------------------------------------

    def _image(self, argument: Expression) -> BoundImage:
        found = self._find(argument.name) if isinstance(argument, Named) else None
        image = self._given.get(found) if isinstance(found, str) else None
        if not isinstance(image, BoundImage):
            raise UnsupportedError("a shader reads a texture that it is not given")
        return image

    def _texel(self, call: Call, channels: Sequence[int]) -> dict[int, Component]:
        image, place = self._image(call.arguments[0]), self._value(call.arguments[1])
        y = place.parts[1] if len(place.parts) > 1 else 0
        return self._images.fetch(image, place.parts[0], y, channels)

    def _interpolated(self, call: Call) -> ShaderValue:
        """Between four pixels, those at the edge repeated, as textures of OpenGL are filtered."""
        image, place = self._image(call.arguments[0]), self._value(call.arguments[1])
        firsts, shares = list[Component](), list[Component]()
        for part, size in zip(place.parts, (image.width, image.height), strict=True):
            extent = self.p.converted(size, "int", "float")
            at = self.p.binary("-", "float", self.p.binary("*", "float", part, extent), 0.5)
            floor = self.p.floor(at)
            firsts.append(self.p.converted(floor, "float", "int"))
            shares.append(self.p.binary("-", "float", at, floor))
        further = [self.p.binary("+", "int", first, 1) for first in firsts]
        channels = range(image.form.channels)
        rows = []
        for y in (firsts[1], further[1]):
            left, right = (self._images.fetch(image, x, y, channels) for x in (firsts[0], further[0]))
            rows.append({each: self.p.mixed(left[each], right[each], shares[0]) for each in channels})
        found = {each: self.p.mixed(rows[0][each], rows[1][each], shares[1]) for each in channels}
        return ShaderValue("vec4", tuple(found.get(each, 1.0 if each == 3 else 0.0) for each in range(4)))
