"""Programs as those for LiteRT are written, run with its import and with ours: they print the same."""

import contextlib
import io
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.gpu_delegate.reading.test_signatures import several
from tests.model_files.delegate_models import any_size
from tests.model_files.quantized_models import small_quantized
from tests.model_files.sketch import Sketch
from tests.model_files.state_models import drawn, lstm

CLASSIFIES = """
    # What is in a picture: the five likeliest classes.
    from MODULE import Interpreter
    interpreter = Interpreter(model_path=path, experimental_delegates=None, num_threads=2)
    interpreter.allocate_tensors()
    input_details = interpreter.get_input_details()
    output_details = interpreter.get_output_details()
    height, width = input_details[0]["shape"][1], input_details[0]["shape"][2]
    input_data = np.expand_dims(picture(height, width), axis=0)
    if input_details[0]["dtype"] == np.float32:
        input_data = (np.float32(input_data) - 127.5) / 127.5
    interpreter.set_tensor(input_details[0]["index"], input_data)
    interpreter.invoke()
    results = np.squeeze(interpreter.get_tensor(output_details[0]["index"]))
    for k in results.argsort()[-5:][::-1]:
        print(f"{float(results[k]):08.4f}: class {k}")
"""
OF_BYTES = """
    # Bytes in and out, by scales and zero points, through arrays over the tensors.
    from MODULE import Interpreter
    interpreter = Interpreter(path, experimental_op_resolver_type=kernels)
    interpreter.allocate_tensors()
    given, found = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
    scale, zero_point = given["quantization"]
    real = np.linspace(-1, 1, given["shape"].prod()).reshape(given["shape"])
    interpreter.tensor(given["index"])()[0][:] = np.clip(np.round(real / scale + zero_point), -128, 127)[0]
    for _ in range(2):
        interpreter.invoke()
    output = interpreter.tensor(found["index"])
    parameters = found["quantization_parameters"]
    print((output().astype(np.float64) - parameters["zero_points"][0]) * parameters["scales"][0])
"""
BY_NAME = """
    # Functions of a model by their names.
    from MODULE import Interpreter
    with open(path, "rb") as file:
        interpreter = Interpreter(model_content=file.read())
    for name, sides in interpreter.get_signature_list().items():
        function = interpreter.get_signature_runner(name)
        shapes = {each: detail["shape"] for each, detail in function.get_input_details().items()}
        output = function(**{each: np.full(shapes[each], k + 2, np.float32) for k, each in enumerate(sides["inputs"])})
        print(name, sides, {each: values.ravel()[:3] for each, values in output.items()})
"""
IN_BATCHES = """
    # Pictures of other sizes than the file's, one after the other.
    from MODULE import Interpreter
    interpreter = Interpreter(model_path=path)
    for height in (6, 10, 6):
        index = interpreter.get_input_details()[0]["index"]
        interpreter.resize_tensor_input(index, [1, height, 8, 3])
        interpreter.allocate_tensors()
        interpreter.set_tensor(index, np.float32(picture(height, 8)[None]) / 255)
        interpreter.invoke()
        output = interpreter.get_output_details()[0]
        print(output["shape"], np.round(interpreter.get_tensor(output["index"]).sum(), 3))
"""
OF_SOUND = """
    # A window of sound after the other, of which the model remembers what it has heard.
    from MODULE import Interpreter
    interpreter = Interpreter(path)
    interpreter.allocate_tensors()
    (source,), (result,) = interpreter.get_input_details(), interpreter.get_output_details()
    for stream in range(2):
        for window in range(3):
            interpreter.set_tensor(source["index"], np.full(source["shape"], window + 1, np.float32))
            interpreter.invoke()
            print(np.round(interpreter.get_tensor(result["index"]), 3))
        interpreter.reset_all_variables()
"""


def classifier() -> bytes:
    m = Sketch(3)
    m.output(m.op("RESHAPE", [m.mean(m.conv(m.image(24, 20, 3), 12, (3, 3))), m.constant((1, 12), "int32")], (1, 12)))
    return m.build()


PROGRAMS: dict[str, tuple[str, bytes]] = {
    "classifies": (CLASSIFIES, classifier()),
    "of bytes": (OF_BYTES, small_quantized()),
    "by name": (BY_NAME, several()),
    "in batches": (IN_BATCHES, any_size()),
    "of sound": (OF_SOUND, drawn(lstm)),
}


def picture(height: int, width: int) -> Any:
    return np.random.default_rng(height).integers(0, 256, (height, width, 3)).astype(np.uint8)


def printed(program: str, module: str, path: Path) -> str:
    from ai_edge_litert.interpreter import OpResolverType

    shown = io.StringIO()
    known = {"np": np, "picture": picture, "path": str(path), "kernels": OpResolverType.BUILTIN_REF}
    known["kernels"] = OpResolverType.BUILTIN_REF if module != "texelflow" else OpResolverType.AUTO
    with contextlib.redirect_stdout(shown):
        exec(textwrap.dedent(program).replace("MODULE", module), known)
    return shown.getvalue()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_prints_the_same_with_our_import(name: str, tmp_path: Path) -> None:
    program, model = PROGRAMS[name]
    path = tmp_path / "model.tflite"
    path.write_bytes(model)
    wanted = printed(program, "ai_edge_litert.interpreter", path)
    assert wanted.count("\n") > 1
    assert printed(program, "texelflow", path) == wanted
