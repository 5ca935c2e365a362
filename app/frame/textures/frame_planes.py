"""What is said of the planes of pictures of one format, whatever draws: their names, and what frame.glsl is told."""

from collections.abc import Sequence

from texelflow.gpu_delegate.targets.glsl.shader import ParameterValue

from ...picture.picture import Layout, PictureFormat, Plane

_LAYOUTS: dict[Layout, int] = {"rgba": 0, "gray": 1, "yuv": 2, "nv12": 3, "yuyv": 4, "uyvy": 5}  # frame.glsl's numbers


def frame_defines(form: PictureFormat, is_apart: bool) -> dict[str, ParameterValue]:
    """The parameters of frame.glsl; `is_apart`: a sample of 16 bits comes as two of 8."""
    matrix, offset = form.to_rgb()
    matrix *= ((1 << 8 * form.sample_bytes) - 1) / ((1 << form.bits) - 1)  # textures' 1.0 is all bits of a sample
    axes = zip(form.chroma_axis(0), form.chroma_axis(1), strict=True)
    places = (f"ivec2({x}, {y})" for x, y in axes)
    return {
        **dict(zip(("STORED_W", "STORED_H"), form.size, strict=True)),
        **dict(zip(("CHROMA_W", "CHROMA_H"), form.chroma_size, strict=True)),
        **dict(zip(("CHROMA_MUL", "CHROMA_ADD", "CHROMA_DIV"), places, strict=True)),
        **dict(zip(("MIRROR_X", "MIRROR_Y"), map(int, form.mirrored), strict=True)),
        "LAYOUT": _LAYOUTS[form.layout],
        "APART": int(is_apart),
        "TRANSPOSE": int(form.orientation.transpose),
        "TO_RGB": f"mat3({', '.join(map(repr, matrix.T.ravel().tolist()))})",
        "OFFSET": f"vec3({', '.join(map(repr, offset.tolist()))})",
    }


class KeptPlanes:
    """Names of the planes of the last pictures: their age is 0 for the newest, 1 for the one before, and so on."""

    def __init__(self, format: PictureFormat, names: Sequence[tuple[int, ...]]) -> None:
        """`names` are those of as many pictures as stay, which are used in turn."""
        self.format = format
        self.uploaded_bytes = 0
        self._names, self._newest = tuple(names), 0

    @property
    def kept(self) -> int:
        """How many pictures stay."""
        return len(self._names)

    @property
    def textures(self) -> tuple[int, ...]:
        """Names for the newest picture, in the order of the planes."""
        return self._names[self._newest]

    def textures_of(self, age: int) -> tuple[int, ...]:
        """The same for a picture of that age. Raises ValueError for one that is not kept."""
        if not 0 <= age < self.kept:
            raise ValueError(f"the picture {age} frames ago is not kept, the last {self.kept} are")
        return self._names[self._newest - age]

    def _refused(self, planes: Sequence[Plane]) -> ValueError:
        """What is raised for planes of another shape."""
        (width, height), layout, shapes = self.format.size, self.format.layout, [plane.shape for plane in planes]
        return ValueError(f"a frame of {width}x{height} {layout} pixels is expected, not planes of {shapes}")
