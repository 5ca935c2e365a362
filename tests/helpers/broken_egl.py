"""The environment in which EGL lists first a GPU whose driver does not start.

The driver is a real one to EGL's dispatcher (libglvnd, whose src/EGL/libeglvendor.h says what it has to export).
"""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

NODE = "/dev/dri/card9"
_VENDORS = Path("/usr/share/glvnd/egl_vendor.d")
_SOURCE = """
#include <stdint.h>
#include <string.h>
static int device;
static void *none(void) { return 0; }
static unsigned error(void) { return 0x3001; } /* EGL_NOT_INITIALIZED */
static const char *text(void *display, int name) {
    return display || name != 0x3055 ? 0 : "EGL_EXT_device_base EGL_EXT_platform_device";
}
static unsigned devices(int most, void **found, int *count) {
    if (found && most > 0) found[0] = &device;
    *count = 1;
    return 1;
}
static const char *device_text(void *which, int name) {
    return name == 0x3055 ? "EGL_EXT_device_drm" : name == 0x3233 ? "NODE" : 0;
}
static void *display(unsigned platform, void *native, const intptr_t *attributes) {
    return platform == 0x313F && native == &device ? &device : 0;
}
static unsigned yes(unsigned api) { return api != 0; }
static void index_of(const char *name, int index) {}
static void *address(const char *name) {
    if (!strcmp(name, "eglQueryDevicesEXT")) return (void *)devices;
    if (!strcmp(name, "eglQueryDeviceStringEXT")) return (void *)device_text;
    if (!strcmp(name, "eglQueryString")) return (void *)text;
    if (!strcmp(name, "eglGetError")) return (void *)error;
    return strncmp(name, "egl", 3) ? 0 : (void *)none;
}
unsigned __egl_Main(uint32_t version, const void *exports, void *vendor, void **imports) {
    void *functions[] = {(void *)display, (void *)yes, (void *)none, (void *)address, (void *)none, (void *)index_of};
    memcpy(imports, functions, sizeof functions);
    return 1;
}
"""

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="a C compiler makes the broken driver")


def broken_first(folder: Path) -> dict[str, str]:
    """Compiles the driver into a folder; this machine's own drivers come after it."""
    source, library, said = folder / "broken.c", folder / "libbroken.so", folder / "broken.json"
    source.write_text(_SOURCE.replace("NODE", NODE))
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True, capture_output=True, timeout=60)
    said.write_text(json.dumps({"file_format_version": "1.0.0", "ICD": {"library_path": str(library)}}))
    return {"__EGL_VENDOR_LIBRARY_FILENAMES": ":".join(map(str, [said, *sorted(_VENDORS.glob("*.json"))]))}
