"""Devices: the driver's limits and the tuning stay apart, and defaults are what OpenGL guarantees."""

from dataclasses import fields, replace

import pytest

from texelflow.gpu_delegate.device.device import HARDWARE, SOFTWARE, Device, Tuning
from texelflow.gpu_delegate.device.families import TUNINGS
from texelflow.gpu_delegate.device.limits import Limits, check_limits
from texelflow.gpu_delegate.model.layout import TEXEL_BYTES
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.runtime import device_of


def test_no_field_is_both_a_limit_and_tuning() -> None:
    limits, tuning = ({field.name for field in fields(record)} for record in (Limits, Tuning))
    assert not limits & tuning


def test_kinds_of_devices_differ_in_tuning_alone() -> None:
    assert SOFTWARE.tuning != HARDWARE.tuning
    assert SOFTWARE.limits == HARDWARE.limits


def test_what_opengl_guarantees_is_enough() -> None:
    check_limits(Limits(), "any")
    assert replace(SOFTWARE.limits, storage_block_bytes=Limits().storage_block_bytes) == Limits()


def test_a_context_has_its_own_limits_and_the_tuning_of_its_kind(context: Context) -> None:
    device = device_of(context)
    assert device.limits is context.limits
    assert device.tuning == TUNINGS[context.family.name]
    assert (device.tuning == SOFTWARE.tuning) == context.is_software


def test_changes_keep_the_rest() -> None:
    changed = HARDWARE.with_tuning(rows=3).with_limits(storage_bindings=9)
    assert changed.tuning == replace(HARDWARE.tuning, rows=3)
    assert changed.limits == replace(HARDWARE.limits, storage_bindings=9)
    assert changed.with_tuning(rows=HARDWARE.tuning.rows).with_limits(storage_bindings=8) == HARDWARE
    with pytest.raises(TypeError, match="storage_bindings"):
        HARDWARE.with_tuning(storage_bindings=9)
    with pytest.raises(TypeError, match="rows"):
        HARDWARE.with_limits(rows=3)


@pytest.mark.parametrize(
    ("texture", "storage", "uniform", "wanted"),
    [(256, 16, 4, 256), (16, 64, 1, 64), (16, 4, 256, 256), (1, 4, 1, TEXEL_BYTES)],
)
def test_ranges_of_the_arena_begin_where_textures_and_blocks_may(
    texture: int, storage: int, uniform: int, wanted: int
) -> None:
    limits = Limits(
        texture_buffer_alignment_bytes=texture, storage_alignment_bytes=storage, uniform_alignment_bytes=uniform
    )
    assert Device(limits, Tuning()).offset_alignment_bytes == wanted
