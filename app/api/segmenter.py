"""The public class Segmenter: makes masks of pictures in RAM, on the GPU or the CPU."""

import contextlib
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Literal, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from .app.frame.backend_choice.compute import open_compute
from .app.frame.backend_choice.frame_job import CpuFrameJob, GlFrameJob, mask_job
from .app.frame.backend_choice.refined_job import RefinedJob
from .app.frame.inference.backends import Backend, ComputeChoice, CpuChoice, CpuEngine
from .app.frame.inference.cpu_choice import chosen_cpu_path
from .app.frame.inference.cpu_path import preprocessor_of
from .app.frame.inference.network_options import NetworkOptions
from .app.models.catalogue import Progress
from .app.models.finding_loading import finds_instead
from .app.models.model_loading import SegmentationModel, load_segmentation
from .app.models.spec import SpecOptions
from .app.picture.picture import rgba_format, rgba_picture
from .app.picture.preprocess import Fit, Preprocessing
from .frame_arrays import Frame, Mask, RgbaCopies, check_frame
from .gpu_delegate.base.errors import UnsupportedError, UsageError
from .gpu_delegate.model.layout import Precision
from .gpu_delegate.plan.compile_options import CompileOptions
from .gpu_delegate.programs.weights_cache import WeightsCache, checked_cache
from .gpu_delegate.reading.reader import ReadModel, read_model
from .gpu_delegate.targets.gl.context import open_context
from .gpu_delegate.targets.llvm.pool import MOST_POOL_THREADS
from .words import LibraryConsole, in_words_of_python, one_of, path_of
from .work_thread import SharedThread

__all__ = ["Segmenter"]

_Result = TypeVar("_Result")

_ONE_AS_BITS = 0x3F800000  # of float32
_MOST_SCORES = 1 << 28


class Segmenter:
    """Masks of pictures: `segment = texelflow.Segmenter("selfie")`, then `mask = segment(frame)`.

    Each frame stands for itself, and the mask is the network's own, interpolated to the frame's size. With `refine` the
    frames are those of a video, in their order, and masks are made as live and replay make them: fitted to the edges
    of the picture, and kept still from frame to frame. reset() begins another video.

        with texelflow.Segmenter("selfie") as segment:
            mask = segment(frame)  # float32 (H, W), 0 to 1
            print(segment.model, segment.backend, segment.renderer)

        with texelflow.Segmenter(refine=True) as segment:
            assert segment.refine
            for frame in frames:
                mask = segment(frame)
            segment.reset()  # what comes now is another video

        segment = texelflow.Segmenter("model.tflite", channel="person")
        print(segment.classes)
        scores = segment.scores(frame)  # float32 (H, W, C), of all classes
        segment.close()

    It may be used from any thread; calls from several threads are done one after the other. What OpenGL has to do is
    done on a thread of its own, so that no other OpenGL is touched. Several Segmenters may be open at a time. close(),
    or the end of a `with` block, frees what it holds.
    """

    def __init__(
        self,
        model: str | os.PathLike[str] = "selfie",
        backend: Literal["auto", "gl", "cpu"] = "auto",
        *,
        input_range: tuple[float, float] | None = None,
        activation: Literal["none", "sigmoid", "softmax"] | None = None,
        channel: int | str | Sequence[int | str] | None = None,
        output: int | str | None = None,
        refine: bool = False,
        fit: Fit = "stretch",
        preprocessing: Preprocessing = "auto",
        precision: Precision = "fp32",
        cpu: CpuEngine = "auto",
        threads: int = 0,
        weights_cache: WeightsCache | None = None,
        quiet: bool = False,
    ) -> None:
        """Load and compile a model.

        model: a name of the catalogue (`texelflow models` lists them), fetched if need be, or the path of a .tflite,
        which may lie in a bundle: tasks.task/segmenter.tflite.
        backend: "gl" is OpenGL (or ES 3.1), "cpu" the CPU; "auto" takes OpenGL unless the CPU makes masks sooner, which
        is measured once. Of a model that OpenGL cannot run wholly the rest runs in TensorFlow Lite: `renderer` tells
        how much.
        input_range, activation, channel: what the model's numbers mean, where neither its metadata nor the catalogue
        says it: what black and white are for it, what its output still needs, and which class is wanted, by its number
        or by the name in the model's labels (`classes` has them). Several make one mask, of any of them: a list, or
        "hair,clothes". "person" is also all of a model's classes but the background where these are parts of people.
        output: which of several outputs has the masks, by its name in the file or its number.
        refine: frames are those of a video; masks are fitted to edges and kept still, in 255 steps.
        fit: how a frame of another aspect becomes the model's input: "stretch", "crop" (mask 0 outside) or "letterbox".
        preprocessing: "auto" averages the pixels under each one of the model's input, and lightens dark frames; "plain"
        is what other programs do: pixels are sampled, and stay as dark as they are.
        precision: "fp16" halves what lies between the steps of a model on the GPU; with
        "fp16-arithmetic" the GPU computes with halves, too. With backend="cpu" and "bf16" native code rounds what
        products are of to bfloat16, where the CPU has AVX512-BF16; elsewhere that is a DeviceError.
        cpu: what runs the model on the CPU: "native" is machine code made for it, by llvmlite, "tflite" TensorFlow
        Lite; "auto" takes the first where it can. threads: of the CPU, 0 for as many as make sense.
        weights_cache: shares weights and code with other instances, and what OpenGL has to do is done on one thread for
        all of them.
        quiet: show no progress; without it there is some on stderr where that is a terminal.

        Raises UsageError, CatalogueError (not found, not fetched), ModelError, UnsupportedError, DeviceError.
        """
        one_of("backend", backend, ("auto", "gl", "cpu"))
        one_of("cpu", cpu, get_args(CpuEngine))
        if not (type(threads) is int and 0 <= threads <= MOST_POOL_THREADS):
            raise UsageError(f"threads={threads!r}: a whole number from 0 to {MOST_POOL_THREADS} is needed")
        if not isinstance(refine, bool):
            raise UsageError(f"refine is True, for frames of a video, or False, not {refine!r}")
        one_of("fit", fit, get_args(Fit))
        one_of("preprocessing", preprocessing, get_args(Preprocessing))
        one_of("precision", precision, get_args(Precision))
        _check_meaning(input_range, activation, channel)
        self._cache = checked_cache(weights_cache)
        with in_words_of_python():
            shown = channel if channel is None or isinstance(channel, int | str) else ",".join(map(str, channel))
            spec = SpecOptions(input_range, activation, shown, output=output)
            console = LibraryConsole(quiet)
            with console.download() as progress:
                read = self._cache.read_model if self._cache else read_model
                loaded = _loaded(path_of(model), spec, progress, read)
        self._lock, self._is_closed, self._process = threading.Lock(), False, os.getpid()
        self._thread = SharedThread(self._cache) if self._cache else ThreadPoolExecutor(1, "texelflow")
        options = NetworkOptions(CompileOptions(precision=precision), fit, preprocessing, self._cache)
        self._refine, self._work = refine, _Work(loaded, options, refine)
        # Of one that is forgotten rather than closed; at the end of the process all goes anyway.
        self._forgotten = weakref.finalize(self, _end, self._thread, self._work, False)
        self._forgotten.atexit = False
        try:
            choice = ComputeChoice(backend, CpuChoice(cpu, threads), precision)
            self._thread.submit(self._work.open, choice, console).result()
        except BaseException:
            self.close()
            raise

    @property
    def model(self) -> str:
        """The model's name in the catalogue, or that of its file."""
        return self._work.model.name

    @property
    def backend(self) -> Backend:
        """Where the model runs: "gl", also if only parts of it do, or "cpu"."""
        return self._work.job.backend

    @property
    def renderer(self) -> str:
        """Who does the work: the GPU as OpenGL calls it, what runs on the CPU, or how much each of them does."""
        return self._work.job.renderer

    @property
    def refine(self) -> bool:
        """Whether frames are those of a video, and masks are refined."""
        return self._refine

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes of the model's output, each by its name in the labels or, without one, by its number: "15".

        Any of them is a value for `channel`. A model whose output is the class of each pixel has the one that was asked
        for.
        """
        return self._work.model.class_names

    def __call__(self, frame: npt.NDArray[Any]) -> Mask:
        """The mask of a frame, float32 (H, W): 0 is background, 1 a person, or whichever class was asked for.

        frame: uint8 (H, W, 3) RGB or (H, W, 4) RGBA, row 0 on top, in any layout in memory; alpha is ignored. The mask
        is the caller's own. A frame of another size than the one before has three small shaders compiled in OpenGL (0.1
        s with llvmpipe, 5 ms where Mesa has them in its cache), and takes some ms on the CPU; the network stays. With
        `refine` it begins another video.
        Raises UsageError for anything else, and after close(); DeviceError for sizes that the GPU does not take.
        """
        check_frame(frame)
        return self._run(self._work.mask, frame)

    def scores(self, frame: npt.NDArray[Any], *, size: Literal["frame", "network"] = "frame") -> Mask:
        """The scores of all `classes`, float32 (H, W, C), of the frame's size or (h, w, C) of the network's output.

        They are what the model's activation makes of its output: after a softmax they add up to 1 in each pixel, and
        without any activation they are not clipped to 0..1, as a mask is. frame: as of a call.
        Raises UsageError for anything else, for more than 256 million scores, with `refine`, and after close();
        DeviceError.
        """
        check_frame(frame)
        one_of("size", size, ("frame", "network"))
        if self._refine:
            raise UsageError("scores are of single frames; make another Segmenter for them, without refine=True")
        height, width = frame.shape[:2]
        if size == "frame" and height * width * len(self.classes) > _MOST_SCORES:
            raise UsageError(
                f"{width}x{height} pixels have too many scores of {len(self.classes)} classes; size='network' has fewer"
            )
        return self._run(self._work.scores, frame, size)

    def reset(self) -> None:
        """Forget the frames so far: after a cut, or before another video. Without `refine` there is nothing to forget.

        Raises UsageError after close().
        """
        self._run(self._work.begin_anew)

    def _run(self, work: Callable[..., _Result], *arguments: Any) -> _Result:
        """Do it on the thread that it has to be done on. Raises UsageError in another process, and after close()."""
        if os.getpid() != self._process:
            raise UsageError("this Segmenter belongs to the process that was forked; make one in each process")
        with self._lock:
            if self._is_closed:
                raise UsageError("this Segmenter is closed; make another one")
            if self._cache:
                self._cache.check_run()
            if self._work.is_free:  # on the caller's thread: nothing ties it to one, and a change takes time
                return work(*arguments)
            result = self._thread.submit(work, *arguments)
        return result.result()

    def close(self) -> None:
        """Free everything, once calls from other threads are done; those that come later raise UsageError."""
        if os.getpid() != self._process:  # of the process that was forked: it holds all, and has the thread
            self._is_closed = True
            self._forgotten.detach()
            return
        with self._lock:
            self._is_closed = True
            self._forgotten.detach()
        _end(self._thread, self._work, True)

    def __reduce__(self) -> str:
        """There are no copies. Raises UsageError."""
        raise UsageError("a Segmenter cannot be copied or pickled; others may share its WeightsCache")

    def __enter__(self) -> "Segmenter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else f"{self.backend}, {self.renderer}"
        refined = ", refined for video" if self._refine else ""
        return f"<texelflow.Segmenter {self.model!r}{refined}: {state}>"


class _Work:
    """All that happens on the Segmenter's own thread; on the CPU frames are handled on any, one at a time."""

    job: GlFrameJob | CpuFrameJob | RefinedJob
    is_free = False  # of any thread

    def __init__(self, model: SegmentationModel, options: NetworkOptions, refine: bool) -> None:
        self.model, self._options, self._refine = model, options, refine
        self._size = model.input_size  # of frames
        self._rgba = RgbaCopies()
        self._opened = contextlib.ExitStack()

    def open(self, choice: ComputeChoice, console: LibraryConsole) -> None:
        """Compile for frames of the network's size: others come later, and errors at once."""
        frame = rgba_format(self._size)
        with in_words_of_python(), console.compilation() as progress:
            cache = self._options.weights_cache
            opener = cache.open_context if cache else open_context
            compute = self._opened.enter_context(open_compute(choice, self.model, self._refine, console, opener))
            if self._refine:
                self.job = RefinedJob(compute, self.model, frame, self._options, console)
            elif compute.context:
                self.job = mask_job(compute.context, self.model, frame, self._options, progress)
            else:
                path, instead = chosen_cpu_path(self.model, frame, choice.cpu, self._options)
                self.job = CpuFrameJob(path, instead)
                if instead:
                    console.note_once(instead)
            self.is_free = compute.context is None
            self._opened.callback(self.job.release)

    def mask(self, frame: Frame) -> Mask:
        """The frame job, with what is asked of a stranger's frame around it."""
        self._take(frame)
        if not self._refine:
            self.job.begin_anew()
        mask = self.job.run(rgba_picture(self._rgba.of(frame)))
        # Read as integers, negative numbers and NaN are larger than 1, too: one pass instead of two.
        return np.clip(mask, 0, 1, out=mask) if mask.view(np.uint32).max() > _ONE_AS_BITS else mask

    def scores(self, frame: Frame, size: str) -> Mask:
        """Of all classes, as the frame job leaves them behind."""
        assert not isinstance(self.job, RefinedJob), "scores are of single frames"
        self._take(frame)
        self.job.begin_anew()
        self.job.run(rgba_picture(self._rgba.of(frame)))
        scores = self.job.scores()
        if size == "network":
            return scores
        way = preprocessor_of(self.model, rgba_format(self._size), self._options.fit, self._options.preprocessing)
        return np.stack([way.mask_to_frame(np.ascontiguousarray(each)) for each in np.moveaxis(scores, -1, 0)], -1)

    def begin_anew(self) -> None:
        """The next frame has nothing to do with those before."""
        self.job.begin_anew()

    def _take(self, frame: Frame) -> None:
        """Be ready for frames of that size."""
        size = frame.shape[1], frame.shape[0]
        if size != self._size:
            with in_words_of_python():
                self.job.take(rgba_format(size))
            self._size = size

    def close(self) -> None:
        """Free everything."""
        self._opened.close()


def _end(thread: ThreadPoolExecutor | SharedThread, work: _Work, wait: bool) -> None:
    """Have the thread close its work after all else, and end; harmless when repeated."""
    with contextlib.suppress(RuntimeError):  # it has ended
        thread.submit(work.close)
    thread.shutdown(wait)


def _loaded(path: str, spec: SpecOptions, progress: Progress | None, read: ReadModel) -> SegmentationModel:
    """A model that segments. Raises as load_segmentation; of a file that finds things the line says who shows it."""
    try:
        return load_segmentation(path, spec, progress, read)
    except (UnsupportedError, UsageError) as error:
        instead = finds_instead(path, read) if spec == SpecOptions() else ""
        if not instead:
            raise
        raise type(error)(f"{error}; {instead}") from None


def _check_meaning(input_range: object, activation: object, channel: object) -> None:
    """Raise UsageError for what has another type than options have; their values are checked with the model."""
    pair = input_range if isinstance(input_range, tuple | list) else ()
    numbers = [each for each in pair if isinstance(each, int | float | np.number) and not isinstance(each, bool)]
    if input_range is not None and not (len(pair) == len(numbers) == 2):
        raise UsageError(f"input_range={input_range!r}: two numbers are needed, as (0, 1) or (-1, 1)")
    if not (activation is None or isinstance(activation, str)):
        raise UsageError(f"activation={activation!r}: 'none', 'sigmoid' or 'softmax' is needed")
    several = channel if isinstance(channel, list | tuple) and channel else [channel]
    if channel is not None and not all(isinstance(each, int | str) and not isinstance(each, bool) for each in several):
        raise UsageError(f"channel={channel!r}: the number or the name of a class is needed, or several in a list")
