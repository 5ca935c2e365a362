"""What frame.glsl is told of pictures of one format, whatever draws."""

from texelflow.gpu_delegate.targets.glsl.shader import ParameterValue

from ...picture.picture import Layout, PictureFormat

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
