"""Shaders are read as their language means them: the preprocessor, precedence, types; what is not known is refused."""

from importlib import resources

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from texelflow.gpu_delegate.base.errors import UnsupportedError
from texelflow.gpu_delegate.shading.shader_reader import read_shader
from texelflow.gpu_delegate.shading.shader_tree import (
    Assignment,
    Binary,
    Call,
    Conditional,
    Declaration,
    For,
    If,
    Literal,
    Named,
    Return,
)
from texelflow.gpu_delegate.shading.shader_words import words_in, words_of
from texelflow.gpu_delegate.targets.glsl.shader import load

FRAGMENT_SHADERS = sorted(
    file.name for file in resources.files("texelflow.shaders").iterdir() if file.name.endswith(".frag")
)


@pytest.mark.parametrize("name", FRAGMENT_SHADERS)
def test_every_fragment_shader_is_read(name: str) -> None:
    shader = read_shader(load(name))
    assert "main" in shader.functions
    assert shader.output[0] in ("vec4", "float")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("#define A 2\nA + A", "2 + 2"),
        ("A\n#define A 2\nA", "A 2"),
        ("#define F(x, y) (x * y)\nF(1, (2, 3)) F", "( 1 * ( 2 , 3 ) ) F"),
        ("#if defined(GL_ES) || __VERSION__ >= 400\na\n#else\nb\n#endif", "b"),
        ("#ifdef NONE\na\n#elif 1\nb\n#else\nc\n#endif d", "b"),
        ("#define N 3\n#if N * 2 == 6 && !defined(M)\na // comment\n#endif\n/* more\nlines */ b", "a b"),
        ("#if 0\n#if 1\na\n#endif\n#else\nb\n#endif", "b"),
        ("#ifndef X\n1.5e3 0x1F .5 2u <<= ++\n#endif", "1.5e3 0x1F .5 2u <<= ++"),
    ],
)
def test_the_preprocessor_is_followed(text: str, words: str) -> None:
    assert " ".join(words_of(text)) == words


def statements(body: str) -> tuple[object, ...]:
    return read_shader(f"out vec4 o; void main() {{ {body} }}").functions["main"].body


def test_operators_bind_as_in_the_language() -> None:
    (found,) = statements("float a = 1 + 2 * -x.y - 3;")
    assert isinstance(found, Declaration)
    assert isinstance(found.value, Binary)
    assert found.value.operator == "-"
    assert found.value.right == Literal(3)
    (choice,) = statements("o = a < b && c ? d : e;")
    assert isinstance(choice, Assignment)
    assert isinstance(choice.value, Conditional)


def test_statements_are_those_that_stand_there() -> None:
    loop, branch = statements("for (int i = 0; i < 3; i++, n += 2) x[i].rg = vec2(i); if (a) return; else b++;")
    assert isinstance(loop, For)
    assert len(loop.step) == 2
    assert isinstance(branch, If)
    assert branch.then == (Return(None),)
    assert loop.condition == Binary("<", Named("i"), Literal(3))


def test_declarations_have_their_types() -> None:
    shader = read_shader(
        """
        #version 330
        struct Place { ivec2 whole; vec2 part; };
        layout(binding = 2) uniform sampler2D plane;
        uniform float weights[3];
        const int COUNT = 2, TABLE[COUNT] = int[](4, 5);
        out float code;
        void locate(int i, out int whole) { whole = i; }
        void main() { Place p; locate(1, p.whole.x); code = float(TABLE[1]); }
        """
    )
    assert [each.name for each in shader.uniforms] == ["plane", "weights"]
    assert shader.structs == {"Place": (("ivec2", "whole"), ("vec2", "part"))}
    assert [each.name for each in shader.constants] == ["COUNT", "TABLE"]
    assert isinstance(shader.constants[1].value, Call)
    assert shader.constants[1].value.is_array
    assert shader.functions["locate"].parameters[1].is_out


@pytest.mark.parametrize(
    "text",
    [
        "void main() { 1 + 2; }",
        "void main() { x = ; }",
        "void main() { if x) y = 1; }",
        "void f() {} void f(int a) {} void main() {}",
        "void main() { @ }",
        "#define A B\n#define B A\nvoid main() { A = 1; }",
        "#if x.y\n#endif",
        "void main() {",
    ],
)
def test_what_is_no_shader_is_refused(text: str) -> None:
    with pytest.raises(UnsupportedError):
        read_shader(text)


@given(st.text(max_size=60))
@settings(max_examples=200)
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = words_in(text.replace("\n", " "))
    except UnsupportedError:
        return
    assert "".join(found) == "".join(text.split())
