"""The frame job of video: it stays as it was where frames of another format cannot be taken."""

import numpy as np
import pytest

from tests.app.frame.inference.test_native_path import segmenting
from tests.helpers.picture_formats import noise
from texelflow.app.console import Console
from texelflow.app.frame.backend_choice.refined_job import RefinedJob
from texelflow.app.frame.inference.backends import ComputeBackend, CpuChoice
from texelflow.app.frame.inference.network_options import NetworkOptions
from texelflow.app.frame.textures.native_pictures import NativePictures
from texelflow.app.picture.picture import rgba_format
from texelflow.gpu_delegate.base.errors import DeviceError
from texelflow.gpu_delegate.targets.gl.context import Context

FORMAT, LARGE = rgba_format((70, 46)), rgba_format((40000, 2))
MODEL = segmenting("softmax", 3)


def job_on(compute: ComputeBackend) -> RefinedJob:
    return RefinedJob(compute, MODEL, FORMAT, NetworkOptions(preprocessing="auto"), Console(quiet=True))


def check_it_goes_on(job: RefinedJob) -> None:
    picture = noise(FORMAT)
    wanted = job.run(picture)
    with pytest.raises(DeviceError):
        job.take(LARGE)
    assert job.run(picture).tobytes() == wanted.tobytes()
    job.take(rgba_format((31, 30)))
    assert job.run(noise(rgba_format((31, 30)))).shape == (30, 31)
    job.take(FORMAT)
    assert job.run(picture).tobytes() == wanted.tobytes()
    assert np.ptp(wanted) > 0.1
    job.release()


def test_in_opengl(context: Context) -> None:
    check_it_goes_on(job_on(ComputeBackend("gl", context)))
    context.check_errors("releasing a job")


def test_in_code_of_the_cpu() -> None:
    native = NativePictures(threads=1)
    check_it_goes_on(job_on(ComputeBackend("cpu", None, CpuChoice("native", 1), native)))
    native.release()


def test_it_needs_something_that_draws() -> None:
    with pytest.raises(ValueError, match="nothing to draw with"):
        job_on(ComputeBackend("cpu", None))
