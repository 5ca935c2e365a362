"""What can go wrong, as exceptions whose text is the one line that a person reads.

TexelflowError          exit code 2: bad input or a machine that lacks something
├── ModelError          the .tflite file is damaged or says something impossible
├── UnsupportedError    the model is sound, but asks for an op or a form that is not supported
├── DeviceError         no OpenGL, one that is too old, a limit exceeded, a driver's refusal
├── MediaError          a video, an image or an output file that cannot be read or written
├── CatalogueError      a model cannot be found, fetched, verified or stored
├── OutputError         standard output takes no more: a full disk
└── UsageError          option values that make no sense
"""


class TexelflowError(Exception):
    """Base of all errors with a text meant for the user: one line with what, where and what to do."""

    exit_code = 2


class ModelError(TexelflowError):
    """The model file is damaged or contradicts itself."""


class UnsupportedError(TexelflowError):
    """The model is sound, but needs something that the engine does not do."""


class DeviceError(TexelflowError):
    """The machine has no usable OpenGL, or less of it than is needed."""


class MediaError(TexelflowError):
    """A video, an image or an output file cannot be read or written."""


class CatalogueError(TexelflowError):
    """A model of the catalogue cannot be found, fetched, verified or stored."""


class OutputError(TexelflowError):
    """Standard output cannot be written."""


class UsageError(TexelflowError):
    """An option's value makes no sense."""


class OpenGLWarning(UserWarning):
    """A driver's complaint about how OpenGL is used."""
