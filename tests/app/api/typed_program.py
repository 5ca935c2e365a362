"""A program that uses every public name as its types promise: mypy and pyright, both strict, read it as a user's.

It is not run; the examples in docstrings are. `make types` has mypy read it in the layout that is installed.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import moderngl
import numpy as np
import numpy.typing as npt

import texelflow

Picture = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.float32]
Values = npt.NDArray[Any]

VERSION: str = texelflow.__version__


def masks(frames: Sequence[Picture]) -> list[Mask]:
    """Of a Segmenter, with all that it says."""
    cache: texelflow.WeightsCache = texelflow.WeightsCache()
    found: list[Mask] = []
    with texelflow.Segmenter("selfie", "cpu", refine=True, weights_cache=cache) as segment:
        cache.finalize_soft()
        cache.finalize_hard()
        found += [segment(frame) for frame in frames]
        segment.reset()
        told: tuple[str, str, str, bool] = (segment.model, segment.backend, segment.renderer, segment.refine)
        sizes: tuple[int, int] = (cache.weights_bytes, cache.arena_bytes)
        print(told, sizes)
    other: texelflow.Segmenter = texelflow.Segmenter(
        "model.tflite", input_range=(0.0, 1.0), activation="softmax", channel="person", output=0, fit="crop"
    )
    names: tuple[str, ...] = other.classes
    scores: Mask = other.scores(frames[0], size="network")
    other.close()
    print(names, scores.shape)
    return found


def programs(context: moderngl.Context, values: Values) -> dict[str, Values]:
    """Of a Model and a Program in a context of one's own."""
    model: texelflow.Model = texelflow.Model.load("model.tflite", signature=None, hybrid="expanded")
    model = model.with_feedback({})
    tensor: texelflow.Tensor = model.inputs[0]
    told: tuple[str, str, tuple[str, ...]] = (model.name, model.signature, model.other_signatures)
    shape: tuple[int, ...] = tensor.shape
    facts: tuple[int, str, str, bool, bool] = (
        tensor.index, tensor.name, tensor.dtype, tensor.is_constant, tensor.is_variable,
    )  # fmt: skip
    scales: tuple[float, ...] = tensor.quantization.scales if tensor.quantization else ()
    constant: npt.NDArray[np.generic] | None = tensor.data
    with texelflow.Program(model, context, precision="fp16") as program:
        program.write(tensor, values)
        program.run()
        result: Values = program.read(model.outputs[0])
        kept: dict[str, Values] = program.states()
        program.restore_states(kept)
        program.reset_states()
        places: list[texelflow.TensorRange] = [program.input, program.output, program.range_of(tensor.name)]
        program.bind_storage(tensor, 0)
        program.bind_texture(model.outputs[0], 3)
        names: list[int] = [place.buffer + place.offset_bytes + place.size_bytes + place.texture for place in places]
        stride: int = places[0].stride
        print(places[0].shape, places[0].storage, program.model, program.renderer, program.context.version_code)
    program.close()
    print(told, shape, facts, scales, constant, names, stride)
    return {"result": result, **kept}


def scaled(inputs: Sequence[Any], operator: texelflow.CustomOperator) -> Values:
    """Of a custom op."""
    factor: Any = operator.options["factor"]
    about: tuple[str, int, bytes] = (operator.op, operator.index, operator.custom_options)
    print(about, len(operator.inputs), operator.outputs[0].name)
    return np.asarray(inputs[0] * factor)


def delegates(module: Any, buffer: moderngl.Buffer) -> None:
    """Of both delegates, in TensorFlow Lite's interpreter, which has no types."""
    op: texelflow.CustomOp = texelflow.custom_op("Scaled", scaled)
    print(op.name, op.function, op.shapes)
    with texelflow.GpuDelegate(strict=True, custom_ops=[op]) as delegate:
        module.Interpreter(model_path="model.tflite", experimental_delegates=[delegate])
        delegate.bind_input(0, buffer, "PHWC4")
        delegate.bind_output(1, buffer)
        delegate.unbind(1)
        texts: tuple[str, str] = (delegate.summary, delegate.renderer)
        reasons: Mapping[int, str] = {**delegate.reasons, **delegate.reasons_of(0)}
        print(texts, reasons, delegate.partitions, delegate.places, delegate.is_applied, delegate.buffer_bytes)
        error: BaseException | None = delegate.error
        delegate.restore_states(delegate.states())
        delegate.reset_states()
        print(error)
    delegate.release()
    with texelflow.Delegate(backend="auto", exact=False) as chosen:
        module.Interpreter(model_path="model.tflite", experimental_delegates=[chosen])
        way: str = chosen.way
        print(way, chosen.report(), chosen.is_applied, chosen.error)
        chosen.restore_states(chosen.states())
        chosen.reset_states()
    chosen.release()


async def interpreters(values: Values, texture: moderngl.Texture) -> Values:
    """Of the Interpreter, with TensorFlow Lite's methods and the short form."""
    further: list[Any] = [texelflow.load_delegate("libedgetpu.so.1", {"device": "usb"})]
    kind: texelflow.OpResolverType = texelflow.OpResolverType.BUILTIN_REF
    kinds = (
        texelflow.OpResolverType.AUTO,
        texelflow.OpResolverType.BUILTIN,
        texelflow.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )
    with texelflow.Interpreter(
        "model.tflite", experimental_delegates=further, experimental_op_resolver_type=kind
    ) as interpreter:
        interpreter.resize_tensor_input(0, values.shape, strict=True)
        interpreter.allocate_tensors()
        index: int = interpreter.get_input_details()[0]["index"]
        interpreter.set_tensor(index, values)
        interpreter.bind_input(index, texture)
        interpreter.bind_output(interpreter.get_output_details()[0]["index"], texture)
        interpreter.unbind(index)
        interpreter.invoke()
        interpreter.tensor(index)()[...] = 0
        interpreter.reset_all_variables()
        found: Values = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        signatures: dict[str, dict[str, list[str]]] = interpreter.get_signature_list()
        runner = interpreter.get_signature_runner("serving_default")
        print(runner(x=values), signatures, interpreter.get_tensor_details(), interpreter.num_subgraphs(), kinds)
        print(interpreter.report(), interpreter.backend, interpreter.experimental_compress_quantization_zero_points)
        found += np.asarray(interpreter(values))
        found += np.asarray(await interpreter.run_async(values))
    interpreter.close()
    return found


def pictures(frame: Picture, context: moderngl.Context) -> int:
    """Of a Pipeline, of videos and a virtual camera."""
    with texelflow.Pipeline(context=context, effect="blur", rate=25.0, smooth=0.5) as camera:
        picture: Picture = camera(frame, time=0.04)
        last: Picture | None = camera.flush()
        mask: Mask = camera.mask
        figures: Mapping[str, float] = camera.figures
        camera.set(effect="replace", background="room")
        camera.reset()
        print(picture.shape, last, mask.shape, figures, camera.settings["effect"])
        print(camera.model, camera.backend, camera.renderer)
        for found in camera.findings:
            thing: texelflow.Finding = found
            region: texelflow.FrameRegion | None = thing.region
            box: tuple[float, float, float, float] = thing.box
            print(thing.kind, thing.score, thing.label, thing.skeleton, thing.track, box)
            print(thing.points.shape, thing.certainty, thing.auxiliary.dtype, thing.world.ndim)
            print(where(region) if region else "in all of the picture")
    camera.close()
    with texelflow.video("talk.mp4", effect="cutout", start=0, end="4s") as video:
        size: tuple[int, int] = video.size
        with texelflow.VirtualCamera(size, rate=video.rate) as shown:
            for each in video:
                shown.send(each)
                print(video.index, video.time, video.frames, video.findings, shown.size, shown.device)
        shown.close()
    video.close()
    written: texelflow.Video = texelflow.video("talk.mp4")
    return texelflow.write("out.mp4", written, quality=60, force=True)


def where(region: texelflow.FrameRegion) -> list[float]:
    """A region's middle, and what else is made of it."""
    half: texelflow.FrameRegion = region.moved(0.25, 0).box_to_frame((0, 0, 0.5, 1))
    points = region.points_to_frame(np.zeros((1, 3), np.float32))
    directions = region.directions_to_frame(np.zeros((1, 3), np.float32))
    print(region.to_frame().shape, points.shape, directions.shape, half.angle)
    return [region.center_x, region.center_y, region.width, region.height]


def caught(error: Exception) -> str:
    """What went wrong, in words of one's own."""
    if isinstance(error, texelflow.ModelSizeError | texelflow.ModelError | texelflow.UnsupportedError):
        return "another model"
    if isinstance(error, texelflow.ContextLostError | texelflow.DeviceError):
        return "another machine"
    if isinstance(error, texelflow.CatalogueError | texelflow.MediaError | texelflow.OutputError):
        return "another file"
    if isinstance(error, texelflow.UsageError | texelflow.InferenceError | texelflow.OpenGLWarning):
        return "another call"
    if isinstance(error, texelflow.SoftwareRendererWarning):
        return "another GPU"
    return str(error) if isinstance(error, texelflow.TexelflowError) else ""
