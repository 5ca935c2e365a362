"""Errors of calls of the interpreter, of the types that TensorFlow Lite's interpreter raises for the same mistakes."""

from ..base.errors import ModelError, UnsupportedError, UsageError


class CallValueError(UsageError, ValueError):
    """An argument has a wrong value: an index, a type, a shape, a name."""


class CallTypeError(UsageError, TypeError):
    """An argument is of a wrong Python type."""


class CallOrderError(UsageError, RuntimeError):
    """A call comes before the one that it needs: invoke before allocate_tensors."""


class ModelValueError(ModelError, ValueError):
    """What was given to the constructor is no model, or a damaged one."""


def no_context() -> CallOrderError:
    """What is raised where something of OpenGL is given to what does not run there."""
    return CallOrderError("textures and buffers of OpenGL take Interpreter(context=...), the moderngl context of them")


class AllocationError(UnsupportedError, RuntimeError):
    """The model cannot run on inputs of these shapes, or not in the way that was asked for."""
