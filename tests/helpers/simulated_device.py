"""A simulated GPU: a rule says how long a kernel takes, with noise, by a clock of its own."""

from collections.abc import Callable

import numpy as np

from texelflow.gpu_delegate.targets.glsl.glsl_kernel import Kernel
from texelflow.gpu_delegate.tuning.candidates import DeviceFacts
from texelflow.gpu_delegate.tuning.isolated import MakeAlone
from texelflow.gpu_delegate.tuning.outputs import Results

COMPILE_S = 0.05
TRY_S = 0.001


class SimulatedDevice:
    """Stands where KernelTimer does: a kernel takes its true time, a little more each time, and seldom much more."""

    facts = DeviceFacts(least_threads=1024, operation_compile_us=10.0, most_held=32)

    def __init__(self, true_ms: Callable[[Kernel], float], seed: int = 0, noise: float = 0.03) -> None:
        self.true_ms, self.noise = true_ms, noise
        self.now_s = 0.0
        self.compiled = list[Kernel]()
        self.is_wrong: Callable[[Kernel], bool] = lambda kernel: False
        self._sources = set[str]()
        self._random = np.random.default_rng(seed)

    def clock(self) -> float:
        """Seconds since it exists, of which only compiling and measuring take some."""
        return self.now_s

    def ms(self, kernel: Kernel, alone: MakeAlone) -> float:
        self._compile(kernel, alone)
        self.now_s += TRY_S
        late = self._random.exponential(self.noise) + (3.0 if self._random.random() < 0.05 else 0.0)
        return self.true_ms(kernel) * (1 + late)

    def outputs(self, kernel: Kernel, alone: MakeAlone) -> Results:
        self._compile(kernel, alone)
        return [np.full(3, 1.01 if self.is_wrong(kernel) else 1.0, np.float32)]

    def release(self) -> None:
        self._sources.clear()

    def _compile(self, kernel: Kernel, alone: MakeAlone) -> None:
        if kernel.source not in self._sources:
            assert alone(kernel).kernels == (kernel,)
            self._sources.add(kernel.source)
            self.compiled.append(kernel)
            self.now_s += COMPILE_S
