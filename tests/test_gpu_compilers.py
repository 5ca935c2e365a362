"""Kernels on GPUs that are not here: valid in both languages, no dearer than the table says; what drivers say is read.

Only texts that are not in the table are compiled. `make gpu-compilers` renews it.
"""

import ctypes
import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.gpu_compilers.compilers import PREFIX, Report, kernels_of, measure, prefix_of
from tests.gpu_compilers.kernels import MODELS, device_of, dispatches, distinct
from tests.gpu_compilers.platforms import RADV_ICD
from tests.gpu_compilers.records import (
    TABLE,
    Cost,
    by_key,
    costs_of,
    losses,
    read_table,
)
from tests.gpu_delegate.test_shader import VALIDATOR, validate
from texelflow.gpu_delegate.limits import Limits

RADV = "radv-navi22"
SLOWEST_S = 2.0  # that a driver may take for one kernel
JOBS = (MODELS[:2], MODELS[2:])


def lacking() -> str:
    """Why RADV cannot be asked here, "" if it can."""
    if not Path(RADV_ICD).exists():
        return "mesa-vulkan-drivers is not installed"
    if shutil.which(VALIDATOR) is None:
        return f"{VALIDATOR} is not installed"
    try:
        ctypes.CDLL("libvulkan.so.1")
    except OSError:
        return "libvulkan1 is not installed"
    return ""


needs_radv = pytest.mark.skipif(bool(lacking()), reason=lacking() or "it is there")
needs_validator = pytest.mark.skipif(shutil.which(VALIDATOR) is None, reason=f"{VALIDATOR} is not installed")
needs_fake_devices = pytest.mark.skipif(prefix_of() is None, reason=f"{PREFIX} does not name fake devices")


@needs_validator
def test_kernels_of_real_models_are_valid_in_both_languages(tmp_path: Path) -> None:
    sources = {
        ("comp", source)
        for api in ("gl", "es")
        for model in MODELS
        for source in distinct(dispatches(model, device_of("hardware", Limits()), api)).values()
    }
    assert len(sources) > 150
    assert validate(sources, tmp_path) == []


@needs_radv
def test_kernels_cost_on_amd_no_more_than_the_table_says() -> None:
    """Of a version of Mesa that is not in the table, a model's kernels are compiled, and cost what they cost."""
    stored = read_table(TABLE)

    def known(mesa: str) -> Mapping[str, Cost]:
        return by_key(stored.get(mesa, {}).get(RADV, {}))

    def ask(models: Sequence[str]) -> Report:
        return measure(RADV, None, kernels_of(models), known)

    reports = [ask(MODELS[:1])]
    table = stored.get(reports[0].mesa, {}).get(RADV)
    if table is not None:
        with ThreadPoolExecutor() as pool:
            reports += pool.map(ask, (MODELS[1:3], MODELS[3:]))
    problems = [problem for report in reports for problem in report.problems]
    for report in reports:
        for model, rows in report.rows.items():
            problems += [f"{model} {row.dispatch.name}: {row.problem}" for row in rows if row.problem]
            problems += [f"{model} {row.dispatch.name}: {row.seconds} s" for row in rows if row.seconds > SLOWEST_S]
            if table is not None:
                problems += losses(RADV, model, table[model], costs_of(rows, known(report.mesa)))
    assert problems == []
