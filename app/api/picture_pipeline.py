"""The public class Pipeline: frames to pictures with an effect, frame by frame, as live and replay make them."""

import contextlib
import math
import os
import sys
import threading
import weakref
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from numbers import Real
from time import perf_counter_ns, sleep
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, overload

import av
import moderngl
import numpy as np
import numpy.typing as npt

from .app.frame.backend_choice.compute import compute_in, open_compute
from .app.frame.inference.backends import Backend, ComputeBackend
from .app.frame.looks.effects import nearest_effect
from .app.frame.textures.borrowed_context import borrowed
from .app.frame.textures.texture_copies import texture_picture
from .app.models.decoders.found import Finding
from .app.opengl_options import opengl_chosen, opengl_of
from .app.picture.picture import Picture, rgba_picture
from .app.picture.video_frame import VideoFrame
from .app.session.abilities import effects_of_model
from .app.session.derived import compute_of
from .app.session.picture_maker import PictureMaker, settings_model
from .app.session.recovery import RESET_WAITS_S
from .app.settings.settings import Settings, SettingValue
from .frame_arrays import Frame, Mask, RgbaCopies
from .given_pictures import GivenPicture, GlTexture, given_picture
from .gpu_delegate.base.errors import ContextLostError, DeviceError, UsageError
from .gpu_delegate.programs.model_sharing import ModelSharing
from .gpu_delegate.programs.weights_cache import WeightsCache, checked_cache
from .gpu_delegate.targets.gl.context import Context, open_context
from .picture_arrays import check_sides
from .pipeline_settings import PipelineSettings, changed_settings, first_settings, settings_of_pipeline
from .words import LibraryConsole, in_words_of_python
from .work_thread import SharedThread

if sys.version_info >= (3, 11):
    from typing import Unpack
elif TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Pipeline"]

_Result = TypeVar("_Result")

_KEPT_COPIES = 3  # of frames that become RGBA: one that is drawn, the one after it, the next
_RATES = 1e-3, 1e6


class Pipeline:
    """Pictures of frames with an effect: `camera = texelflow.Pipeline(effect="blur")`, then `picture = camera(frame)`.

        with texelflow.Pipeline(effect="replace", background="room") as camera:
            for frame in frames:  # uint8 (H, W, 3) RGB or (H, W, 4) RGBA
                picture = camera(frame)  # the same kind
                mask = camera.mask  # float32 (H, W), 0 to 1
            print(camera.findings)  # of a model that finds faces, hands or people
            print(camera.figures)  # ms of each stage
            camera.reset()  # what comes now is another stream
            camera.set(effect="blur")
            print(camera.settings["effect"], camera.model, camera.backend, camera.renderer)

        camera = texelflow.Pipeline(delay_video=True)  # each mask also of the frame after it
        pictures = [camera(frame) for frame in frames][1:]  # of the first frame there are two
        pictures.append(camera.flush())
        camera.close()

    Frames are those of one stream: masks are kept still from frame to frame, and fitted to the frame's edges, as
    `texelflow live` does it; the pictures have the bytes that `texelflow replay` writes. reset() tells of a cut.

    It may be used from any thread; calls from several threads are done one after the other. What OpenGL has to do is
    done on a thread of its own, so that no other OpenGL is touched; with `context` it is done in the caller's. close(),
    or the end of a `with` block, frees what it holds.
    """

    def __init__(
        self,
        *,
        context: moderngl.Context | None = None,
        rate: float = 30.0,
        weights_cache: WeightsCache | None = None,
        quiet: bool = False,
        **settings: "Unpack[PipelineSettings]",
    ) -> None:
        """Load and compile a model.

        settings: those of `texelflow live` by their names, which `texelflow live --help` explains: effect, background,
        blur, strength, legend, light_wrap, mirror, private; model, backend, cpu, threads, precision, fit,
        preprocessing and all else about the model; refine, detail, edges, smooth, threshold, gamma, grow, feather,
        delay_video of masks; every, skip_still, still_db. A background alone means the effect "replace", a blur "blur".
        Those that concern a camera, a window or files are refused. `settings` has their values.
        context: one of moderngl's, current in this thread, of OpenGL 4.3 or ES 3.1: all is done in it, in this thread,
        where it has to be current again at each call. The shader program, the vertex array and bindings of textures,
        samplers and buffers are others afterwards; framebuffers, the viewport, blending and tests are as before.
        rate: frames a second, of those that come without a time.
        weights_cache: shares weights and code with other instances, and the thread of OpenGL.
        quiet: show no progress; without it there is some on stderr where that is a terminal.

        Raises UsageError for settings that there are not, or do not go together, MediaError for a background,
        CatalogueError (not found, not fetched), ModelError, UnsupportedError, DeviceError.
        """
        with in_words_of_python():
            first, given = first_settings(settings)
        if context is not None and not isinstance(context, moderngl.Context):
            raise UsageError(f"context is a moderngl.Context, not {type(context).__name__}")
        if context is not None and (first.backend == "cpu" or first.gpu or first.gl_api != "auto"):
            raise UsageError("context is where OpenGL computes and draws: leave backend, gpu and gl_api out")
        self._step_ms = 1000 / _number("rate", rate, *_RATES)
        self._cache = checked_cache(weights_cache)
        self._lock, self._is_closed, self._process = threading.Lock(), False, os.getpid()
        self._owner = None if context is None else threading.get_ident()
        self._work = _Work(first, given, LibraryConsole(quiet), self._cache)
        self._thread: ThreadPoolExecutor | SharedThread | None = None
        if context is None:
            self._thread = SharedThread(self._cache) if self._cache else ThreadPoolExecutor(1, "texelflow")
        # Of one that is forgotten rather than closed; at the end of the process all goes anyway.
        self._forgotten = weakref.finalize(self, _end, self._thread, self._work, False)
        self._forgotten.atexit = False
        try:
            if self._thread:
                self._thread.submit(self._work.open, None).result()
            else:
                self._work.open(context)
        except BaseException:
            self.close()
            raise

    # Frames -----------------------------------------------------------------------------------------------------------

    @overload
    def __call__(self, frame: npt.NDArray[Any], time: float | None = None) -> Frame: ...
    @overload
    def __call__(self, frame: moderngl.Texture, time: float | None = None) -> moderngl.Texture: ...
    @overload
    def __call__(self, frame: GlTexture, time: float | None = None) -> GlTexture: ...
    @overload
    def __call__(self, frame: "av.VideoFrame", time: float | None = None) -> "av.VideoFrame": ...
    @overload
    def __call__(self, frame: Any, time: float | None = None) -> Any: ...
    def __call__(self, frame: Any, time: float | None = None) -> Any:
        """The picture of a frame, of its size and kind; with transparency of either kind with the effect "cutout".

        frame: one of these, row 0 on top; alpha is ignored:
        - uint8 (H, W, 3) RGB or (H, W, 4) RGBA, in any layout in memory; the picture is RGB or RGBA;
        - a Pillow image; the picture is one of mode RGB or RGBA;
        - what speaks DLPack (a tensor of PyTorch in RAM), uint8, channels last or first; the picture is the same;
        - an av.VideoFrame, also of YUV, by the matrix and range that it states; the picture is one of its format, with
          its time stamp, of "rgba" where there is transparency;
        - planes of YUV, uint8 in a tuple: (Y, U, V) of I420, 4:2:2 or 4:4:4, (Y, UV) of NV12 with UV (h, w, 2), (YUYV,)
          with (H, W, 2), in limited range, BT.709 from 1280x720 on and BT.601 below; the picture is such a tuple,
          an array of RGBA where there is transparency;
        - with `context` a moderngl.Texture of it, or (name, width, height) of OpenGL's, of 3 or 4 components; the
          picture is a texture of RGBA8, which is drawn over by the next call. Nothing is read back.
        Arrays and images are the caller's own. A frame of another size than the one before begins anew, and has some
        shaders compiled. With the setting delay_video, which makes better masks, the picture is that of the frame
        before, but for the first frame; flush() gives the last one.
        time: seconds, when the frame was taken, on any clock; by it backgrounds move, and skip_still counts. Without it
        frames follow one another at `rate`.

        A GPU that was reset is opened anew, as after another size; in a caller's context that is a ContextLostError.

        Raises UsageError for anything else, and after close(); DeviceError for sizes that the GPU does not take.
        """
        given, seconds = given_picture(frame), None if time is None else _number("time", time)
        return self._do(lambda work: work.picture(given, seconds, self._step_ms), runs=True)

    def flush(self) -> Any:
        """The picture of the last frame, where delay_video keeps it back; None if it has come already."""
        return self._do(lambda work: work.last_picture(), runs=True)

    def reset(self) -> None:
        """The next frame has nothing to do with those before: after a cut, a seek, or when a camera is back."""
        self._do(lambda work: work.begin_anew())

    @property
    def mask(self) -> Mask:
        """The mask of the last picture, float32 (H, W): 0 is background, 1 a person, or the class asked for.

        It is refined, and has the curve and edge of the settings, as `replay --masks` writes it. It is read, and with
        the effects "none" and "classes" made, when it is asked for; the array stays the caller's.

        Raises UsageError before the first frame, and for models that put out a picture without transparency.
        """
        return self._do(lambda work: work.maker.mask())

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What a model that finds things (model="hand-landmark-full") found in the last picture's frame, best first.

        Places are pixels of the frame. Empty before the first frame, where nothing was found, and for other models.
        """
        return self._do(lambda work: work.maker.findings, here=True)

    @property
    def figures(self) -> Mapping[str, float]:
        """What the last frame took, in ms, by stage: `decode` (made RGBA), upload, image_to_tensor, network, refine,
        composite, `read` (the picture, into RAM). Of GPUs that are not waited for, a frame some calls ago; {} before.
        """
        return self._do(lambda work: work.maker.figures, here=True)

    # Settings ---------------------------------------------------------------------------------------------------------

    def set(self, **settings: "Unpack[PipelineSettings]") -> None:
        """Change settings from the next frame on; another model is loaded and compiled now.

        Raises UsageError for what cannot change while it runs (backend, cpu, threads, gpu, gl_api, precision, hybrid,
        compile_budget, fit, preprocessing, memory, planner, reorder; private, once it is on), and as the constructor;
        then all stays as it was.
        """
        self._do(lambda work: work.change(settings))

    @property
    def settings(self) -> Mapping[str, SettingValue]:
        """All settings with their values now."""
        return MappingProxyType(settings_of_pipeline(self._work.settings))

    @property
    def model(self) -> str:
        """The model's name in the catalogue, or that of its file."""
        return self._work.maker.model.name

    @property
    def backend(self) -> Backend:
        """Where the network runs: "gl" or "cpu"; renderer says what draws."""
        return self._work.compute.backend

    @property
    def renderer(self) -> str:
        """Who does the work: the GPU as OpenGL calls it, or what computes and draws on the CPU."""
        return self._work.maker.renderer

    # ------------------------------------------------------------------------------------------------------------------

    def __reduce__(self) -> str:
        """There are no copies. Raises UsageError."""
        raise UsageError("a Pipeline cannot be copied or pickled; others may share its WeightsCache")

    def close(self) -> None:
        """Free everything, once calls from other threads are done; those that come later raise UsageError.

        Harmless when repeated.
        """
        if os.getpid() != self._process:  # of the process that was forked: it holds all, and has the thread
            self._is_closed = True
            self._forgotten.detach()
            return
        if self._owner is not None and not self._is_closed:
            self._check_thread()
        with self._lock:
            self._is_closed = True
            self._forgotten.detach()
        _end(self._thread, self._work, True)

    def __enter__(self) -> "Pipeline":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else f"{self.backend}, {self.renderer}"
        effect = nearest_effect(self._work.settings.effect, effects_of_model(self._work.maker.model))
        return f"<texelflow.Pipeline {effect} by {self._work.settings.model!r}: {state}>"

    def _do(self, act: "Callable[[_Work], _Result]", runs: bool = False, here: bool = False) -> _Result:
        """Have it done by the thread of OpenGL, or here, where nothing is tied to a thread. Raises UsageError."""
        if os.getpid() != self._process:
            raise UsageError("this Pipeline belongs to the process that was forked; make one in each process")
        if self._owner is not None:
            self._check_thread()
        with self._lock:
            if self._is_closed:
                raise UsageError("this Pipeline is closed; make another one")
            if runs and self._cache:
                self._cache.check_run()
            if here or self._thread is None or self._work.compute.context is None:
                with contextlib.nullcontext() if here else self._work.borrowed():
                    return act(self._work)
            done = self._thread.submit(act, self._work)
        return done.result()

    def _check_thread(self) -> None:
        if threading.get_ident() != self._owner:
            raise UsageError("a Pipeline with a context belongs to the thread that made it; use it there")


class _Work:
    """All that happens on the thread of OpenGL; where there is none it happens on any, one call at a time.

    What a caller gave becomes a VideoFrame by `_taken`, and leaves by `_give`; PictureMaker knows of neither, and reads
    nothing back unless it is asked.
    """

    compute: ComputeBackend
    maker: PictureMaker

    def __init__(
        self, settings: Settings, given: Mapping[str, object], console: LibraryConsole, cache: ModelSharing | None
    ) -> None:
        self.settings = settings
        self._given, self._console, self._cache = given, console, cache
        self._copies = RgbaCopies(_KEPT_COPIES)
        self._start_ms: float | None = None  # when the first frame was taken, on the caller's clock
        self._time_ms = 0.0  # of the next frame, if nothing else is said
        self._last: GivenPicture | None = None  # the last frame
        self._picture: Any = None  # the last one, until it is handed over
        self._lent: Context | None = None
        self._out: moderngl.Texture | None = None  # of pictures of textures
        self._opened = contextlib.ExitStack()

    def open(self, mgl: moderngl.Context | None) -> None:
        """Load the model, open what computes and draws, and compile. Raises TexelflowError."""
        settings = self.settings
        with in_words_of_python():
            model = settings_model(settings, self._console, self._cache)
            if mgl:
                self._lent = self._opened.enter_context(Context.from_moderngl(mgl))
                choice = replace(compute_of(settings), backend="gl")
                compute = compute_in(self._lent, choice, model, self._console)
            else:
                opener = self._cache.open_context if self._cache else open_context
                with opengl_chosen(opengl_of(settings)):
                    opened = open_compute(compute_of(settings), model, True, self._console, opener)
                    compute = self._opened.enter_context(opened)
            self.compute = compute
            with self.borrowed():
                self.maker = PictureMaker(compute, model, settings, self._given, self._console, self._cache)
            self._opened.callback(self.maker.release)

    def _open_again(self) -> None:
        """All is built anew after a reset of the GPU. Raises TexelflowError if it is not back in time."""
        for wait_s in RESET_WAITS_S:
            with contextlib.suppress(DeviceError):  # freeing what is lost may fail, too
                self.close()
            with contextlib.suppress(DeviceError):
                self.open(None)
                return
            sleep(wait_s)
        self.open(None)

    def borrowed(self) -> contextlib.AbstractContextManager[None]:
        """Within it a caller's context may be drawn in."""
        return borrowed(self._lent) if self._lent else contextlib.nullcontext()

    def picture(self, given: GivenPicture, time_s: float | None, step_ms: float) -> Any:
        """The picture of a frame."""
        with in_words_of_python():
            taken = self._taken(given, time_s, step_ms)
            try:
                self.maker.run(taken, self._give)
            except ContextLostError:
                if self._lent:
                    raise
                self._open_again()
                self.maker.run(replace(taken, index=0), self._give)
        return self._handed_over()

    def last_picture(self) -> Any:
        """As Pipeline.flush has it."""
        return self._handed_over() if self.maker.run_last(self._give) else None

    def begin_anew(self) -> None:
        """As Pipeline.reset has it."""
        self.maker.begin_anew()
        self._start_ms, self._time_ms = None, 0.0

    def change(self, given: Mapping[str, Any]) -> None:
        """As Pipeline.set has it."""
        with in_words_of_python():
            settings, values = changed_settings(self.settings, given)
            self.maker.change(settings, values)
        self.settings, self._given = settings, {**self._given, **values}

    def _taken(self, given: GivenPicture, time_s: float | None, step_ms: float) -> VideoFrame:
        """What was given as a frame of the stream, with its number and time."""
        start_ns = perf_counter_ns()
        index = self.maker.next_index
        picture = self._picture_of(given)
        if time_s is not None:
            if self._start_ms is None:
                self._start_ms = time_s * 1000 - self._time_ms
            self._time_ms = time_s * 1000 - self._start_ms
        time_ms, self._time_ms = self._time_ms, self._time_ms + step_ms
        self._last = given
        took_ms = (perf_counter_ns() - start_ns) / 1e6
        return VideoFrame(index, index, time_ms, picture, start_ns, took_ms, given.convert)

    def _picture_of(self, given: GivenPicture) -> Picture:
        """The planes, or the texture. Raises UsageError for a texture of another context."""
        keeps = self.maker.keeps_frames
        if given.pixels is not None:
            return rgba_picture(self._copies.of(given.pixels, keeps))
        if given.texture is not None:
            return texture_picture(self._texture_of(given.texture))
        assert given.picture, "it is one of these"
        if not (keeps and given.is_shared):
            return given.picture
        return replace(given.picture, planes=tuple(np.array(plane) for plane in given.picture.planes))

    def _texture_of(self, given: moderngl.Texture | GlTexture) -> moderngl.Texture:
        """The caller's texture. Raises UsageError for one that is not of the context."""
        if self._lent is None:
            raise UsageError("a texture is taken in its own context: make a Pipeline(context=...) of that")
        if isinstance(given, moderngl.Texture):
            if isinstance(given.mglo, moderngl.InvalidObject):
                raise UsageError("this texture has been released; give another one")
            if given.ctx is not self._lent.mgl:
                raise UsageError("this texture belongs to another moderngl context than the Pipeline")
            return given
        name, width, height = given
        if not (0 < name < 1 << 32 and self._lent.gl.glIsTexture(name)):
            raise UsageError(f"there is no texture {name} in the Pipeline's context")
        check_sides(width, height, "a texture")
        return self._lent.mgl.external_texture(name, (width, height), 4, 0, "f1")

    def _give(self, read: Callable[[], Frame]) -> None:
        """Take a picture as what the last frame was for the caller; a texture is copied, and nothing is read."""
        assert self._last, "a frame came"
        if self._last.texture is None:
            self._picture = self._last.give(read(), self.maker.settings.effect == "cutout")
            return
        assert self._lent, "it is of its context"
        size = self.maker.picture_size
        if self._out is None or self._out.size != size:
            self._release_out()
            self._out = self._lent.mgl.texture(size, 4)
        self.maker.copy_picture(self._out)
        self._picture = self._out if isinstance(self._last.texture, moderngl.Texture) else (self._out.glo, *size)

    def _handed_over(self) -> Any:
        picture, self._picture = self._picture, None
        assert picture is not None, "each frame has one"
        return picture

    def _release_out(self) -> None:
        if self._out:
            self._out.release()

    def close(self) -> None:
        """Free everything."""
        self._release_out()
        self._out = None
        self._opened.close()


def _end(thread: ThreadPoolExecutor | SharedThread | None, work: _Work, wait: bool) -> None:
    """Have the thread close its work after all else, and end; harmless when repeated."""
    if thread is None:
        work.close()
        return
    with contextlib.suppress(RuntimeError):  # it has ended
        thread.submit(work.close)
    thread.shutdown(wait)


def _number(name: str, value: Any, low: float = -math.inf, high: float = math.inf) -> float:
    """A finite number within bounds. Raises UsageError."""
    bounds = f" from {low:g} to {high:g}" if low > -math.inf else ""
    number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    if not (math.isfinite(number) and low <= number <= high):
        raise UsageError(f"{name}={value!r}: a number{bounds} is needed")
    return number
