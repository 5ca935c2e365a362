"""What can go wrong, as exceptions whose text is the one line that the user reads.

TexelflowError          exit code 2: bad input, or something that the machine lacks
├── ModelError          the .tflite file, or the bundle, is damaged, contradicts itself or is none
│   └── ModelSizeError  it may be sound, but is larger than what is read here
├── UnsupportedError    the model is valid, but needs an op or a form of it that is not supported
├── DeviceError         no OpenGL, too old a version, a limit exceeded, an error of the driver
│   └── ContextLostError  the GPU was reset, or lost its memory: all that was made on it is gone
├── InferenceError      a run that TensorFlow Lite would refuse: an index out of range, a division by zero
├── MediaError          a video, an image or an output file that cannot be read or written
├── CatalogueError      a model cannot be found, fetched, verified or stored
├── OutputError         standard output cannot be written: a full disk
└── UsageError          invalid values of options
"""


class TexelflowError(Exception):
    """Base of all errors with a text meant for the user: one line with what, where and what to do.

        try:
            segment = texelflow.Segmenter("nowhere.tflite")
        except texelflow.TexelflowError as error:
            print(error)

    The others are caught alike, by their own names or by this one.
    """

    exit_code = 2  # of the command line


class ModelError(TexelflowError):
    """The model file is damaged or contradicts itself."""


class ModelSizeError(ModelError):
    """The model file may be sound, but has more of something than is read here."""


class UnsupportedError(TexelflowError):
    """The model is valid, but needs something that the engine does not support."""


class DeviceError(TexelflowError):
    """The machine has no usable OpenGL, or one that offers less than is needed."""


class ContextLostError(DeviceError):
    """The GPU was reset, or lost its memory while the computer slept: a new context and all in it have to be made."""


class InferenceError(TexelflowError, RuntimeError):
    """A run on values that TensorFlow Lite refuses, as its RuntimeError: an index out of range, a division by zero."""


class MediaError(TexelflowError):
    """A video, an image or an output file cannot be read or written."""


class CatalogueError(TexelflowError):
    """A model of the catalogue cannot be found, fetched, verified or stored."""


class OutputError(TexelflowError):
    """Standard output cannot be written."""


class UsageError(TexelflowError):
    """An option's value is invalid."""


class OpenGLWarning(UserWarning):
    """A message of the driver about how OpenGL is used."""


class SoftwareRendererWarning(UserWarning):
    """OpenGL is computed by the CPU here, more slowly than by other ways that were not asked for."""
