"""Reads a Vulkan driver's statistics and listing of a pipeline, through ctypes.

Through ctypes and VK_KHR_pipeline_executable_properties; the structures are those of Vulkan's specification.
"""

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, Structure, byref, c_char, c_char_p, c_float, c_int32, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any

from .glslang import SETS, BindingKind, Module

_KINDS: dict[BindingKind, int] = {"texels": 4, "uniform": 6, "storage": 7}  # VkDescriptorType
_COMPUTE_STAGE, _CAPTURE_STATISTICS, _CAPTURE_LISTINGS = 0x20, 0x40, 0x80
_EXTENSION = b"VK_KHR_pipeline_executable_properties"
Fields = list[tuple[str, Any]]
_HEAD: Fields = [("type", c_int32), ("next", c_void_p)]


class _Application(Structure):
    _fields_ = [*_HEAD, ("name", c_char_p), ("version", c_uint32), ("engine", c_char_p), ("engine_version", c_uint32),
                ("api", c_uint32)]  # fmt: skip


class _Instance(Structure):
    _fields_ = [*_HEAD, ("flags", c_uint32), ("application", POINTER(_Application)), ("layers", c_uint32),
                ("layer_names", c_void_p), ("extensions", c_uint32), ("extension_names", c_void_p)]  # fmt: skip


class _Queue(Structure):
    _fields_ = [*_HEAD, ("flags", c_uint32), ("family", c_uint32), ("count", c_uint32),
                ("priorities", POINTER(c_float))]  # fmt: skip


class _Features(Structure):
    _fields_ = [*_HEAD, ("on", c_uint32)]


class _Device(Structure):
    _fields_ = [*_HEAD, ("flags", c_uint32), ("queues", c_uint32), ("queue", POINTER(_Queue)), ("layers", c_uint32),
                ("layer_names", c_void_p), ("extensions", c_uint32), ("extension_names", POINTER(c_char_p)),
                ("features", c_void_p)]  # fmt: skip


class _Binding(Structure):
    _fields_ = [("binding", c_uint32), ("kind", c_int32), ("count", c_uint32), ("stages", c_uint32),
                ("samplers", c_void_p)]  # fmt: skip


class _SetLayout(Structure):
    _fields_ = [*_HEAD, ("flags", c_uint32), ("count", c_uint32), ("bindings", POINTER(_Binding))]


class _PipelineLayout(Structure):
    _fields_ = [*_HEAD, ("flags", c_uint32), ("count", c_uint32), ("sets", POINTER(c_uint64)), ("ranges", c_uint32),
                ("range", c_void_p)]  # fmt: skip


class _ShaderModule(Structure):
    _fields_ = [*_HEAD, ("flags", c_uint32), ("size", c_size_t), ("code", c_char_p)]


class _Stage(Structure):
    _fields_ = [*_HEAD, ("flags", c_uint32), ("stage", c_uint32), ("module", c_uint64), ("entry", c_char_p),
                ("constants", c_void_p)]  # fmt: skip


class _Pipeline(Structure):
    _fields_ = [*_HEAD, ("flags", c_uint32), ("stage", _Stage), ("layout", c_uint64), ("base", c_uint64),
                ("base_index", c_int32)]  # fmt: skip


class _Executable(Structure):
    _fields_ = [*_HEAD, ("pipeline", c_uint64), ("index", c_uint32)]


class _Statistic(Structure):
    _fields_ = [*_HEAD, ("name", c_char * 256), ("description", c_char * 256), ("format", c_int32), ("value", c_uint64)]


class _Listing(Structure):
    _fields_ = [*_HEAD, ("name", c_char * 256), ("description", c_char * 256), ("is_text", c_uint32),
                ("size", c_size_t), ("data", c_void_p)]  # fmt: skip


class Vulkan:
    """A device of the one Vulkan driver of this process."""

    def __init__(self) -> None:
        """Raises OSError without the loader, RuntimeError without a driver or its extension."""
        self._library = ctypes.CDLL("libvulkan.so.1")
        application = _Application(type=0, api=(1 << 22) | (1 << 12))
        self._instance = c_void_p()
        info = _Instance(type=1, application=ctypes.pointer(application))
        self._call("vkCreateInstance", byref(info), None, byref(self._instance))
        count, physical = c_uint32(1), c_void_p()
        self._call("vkEnumeratePhysicalDevices", self._instance, byref(count), byref(physical))
        properties = ctypes.create_string_buffer(2048)  # VkPhysicalDeviceProperties is smaller
        self._library.vkGetPhysicalDeviceProperties(physical, properties)
        self.name = properties.raw[20:276].split(b"\0")[0].decode()
        packed = int.from_bytes(properties.raw[4:8], "little")
        self.version = f"{packed >> 22}.{packed >> 12 & 0x3FF}.{packed & 0xFFF}"  # of the driver
        queue = _Queue(type=2, count=1, priorities=(c_float * 1)(1.0))
        features = _Features(type=1000269000, on=1)
        self._device = c_void_p()
        wanted = _Device(type=3, next=ctypes.addressof(features), queues=1, queue=ctypes.pointer(queue), extensions=1,
                         extension_names=(c_char_p * 1)(_EXTENSION))  # fmt: skip
        self._call("vkCreateDevice", physical, byref(wanted), None, byref(self._device))

    def statistics(self, module: Module) -> tuple[dict[str, int], str]:
        """What the driver counts in a compute shader, and its listing of machine code, "" if it has none.

        Raises RuntimeError.
        """
        shader, pipeline = c_uint64(), c_uint64()
        code = _ShaderModule(type=16, size=len(module.code), code=module.code)
        self._call("vkCreateShaderModule", self._device, byref(code), None, byref(shader))
        stage = _Stage(type=18, stage=_COMPUTE_STAGE, module=shader, entry=b"main")
        info = _Pipeline(type=29, flags=_CAPTURE_STATISTICS | _CAPTURE_LISTINGS, stage=stage,
                         layout=self._layout(module.bindings), base_index=-1)  # fmt: skip
        self._call("vkCreateComputePipelines", self._device, c_uint64(), 1, byref(info), None, byref(pipeline))
        executable = _Executable(type=1000269003, pipeline=pipeline)
        found = self._counted(executable), self._listing(executable)
        self._done("vkDestroyPipeline", pipeline)
        self._done("vkDestroyShaderModule", shader)
        return found

    def _layout(self, bindings: Sequence[tuple[BindingKind, int]]) -> int:
        sets = (c_uint64 * len(SETS))()
        for kind, number in SETS.items():
            own = [_Binding(at, _KINDS[kind], 1, _COMPUTE_STAGE) for each, at in bindings if each == kind]
            info = _SetLayout(type=32, count=len(own), bindings=(_Binding * max(len(own), 1))(*own))
            made = c_uint64()
            self._call("vkCreateDescriptorSetLayout", self._device, byref(info), None, byref(made))
            sets[number] = made.value
        layout, wanted = c_uint64(), _PipelineLayout(type=30, count=len(SETS), sets=sets)
        self._call("vkCreatePipelineLayout", self._device, byref(wanted), None, byref(layout))
        return layout.value

    def _counted(self, executable: _Executable) -> dict[str, int]:
        get, count = self._extension("vkGetPipelineExecutableStatisticsKHR"), c_uint32()
        get(self._device, byref(executable), byref(count), None)
        found = (_Statistic * count.value)(*(_Statistic(type=1000269004) for _ in range(count.value)))
        get(self._device, byref(executable), byref(count), found)
        return {each.name.decode().lower(): each.value for each in found}

    def _listing(self, executable: _Executable) -> str:
        get, count = self._extension("vkGetPipelineExecutableInternalRepresentationsKHR"), c_uint32()
        get(self._device, byref(executable), byref(count), None)
        found = (_Listing * count.value)(*(_Listing(type=1000269005) for _ in range(count.value)))
        get(self._device, byref(executable), byref(count), found)  # sizes
        texts = [ctypes.create_string_buffer(each.size) for each in found]
        for each, text in zip(found, texts, strict=True):
            each.data = ctypes.addressof(text)
        get(self._device, byref(executable), byref(count), found)
        by_name = {each.name.decode(): text.value.decode() for each, text in zip(found, texts, strict=True)}
        return by_name.get("Assembly", "")

    def _extension(self, name: str) -> Any:
        find = self._library.vkGetDeviceProcAddr
        find.restype = c_void_p
        return ctypes.CFUNCTYPE(c_int32, c_void_p, c_void_p, c_void_p, c_void_p)(find(self._device, name.encode()))

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._library, name)(*arguments)
        if code < 0:
            raise RuntimeError(f"{name} failed: {code}")

    def _done(self, name: str, handle: c_uint64) -> None:
        getattr(self._library, name)(self._device, handle, None)
