"""Gathers what a person does in a window with mouse and keys, for Dear ImGui.

Kept instead of imgui_bundle's GLFW backends. The one in Python needs PyOpenGL, which leaves OpenGL's state changed, has
no key by the keyboard's layout, drops characters above U+FFFF and takes the screen's units for pixels. The one in C++
needs its libglfw and ours to be one, which the system's linker sees to on Linux only, and a window wherever anything is
clicked: inputs that are data are tested and drawn without one.
"""

from typing import Any

from ..overlay.input_events import Button, Held, Input, Left, Moved, Typed, Wheel

_MOST = 1000  # inputs kept; only a window that draws no more lets so many come together
_LONGEST_BYTES = 4096  # of what is pasted


class Listener:
    """Gathers inputs of one window of glfw, while it is switched on."""

    def __init__(self, glfw: Any, handle: Any) -> None:
        """Switched off."""
        self._glfw, self._handle = glfw, handle
        self._names = _names(glfw)
        self._inputs: list[Input] = []
        self._on = self._begun = False

    @property
    def on(self) -> bool:
        """Whether it listens."""
        return self._on

    @on.setter
    def on(self, on: bool) -> None:
        if on == self._on:
            return
        self._on, self._inputs = on, [] if on else [Left()]
        if on:
            self._begin()

    def take(self) -> list[Input]:
        """What has been done since the last call."""
        inputs, self._inputs = self._inputs, []
        return inputs

    def key(self, key: int, scancode: int, action: int, modifiers: int) -> None:
        """To be called for each key of the window; what is held down is repeated by whoever listens."""
        glfw = self._glfw
        if not self._on or action == glfw.REPEAT:
            return
        name = self._names.get(key, "")
        if not name and glfw.KEY_A <= key <= glfw.KEY_Z:
            name = (glfw.get_key_name(key, scancode) or "").lower()  # in the keyboard's own layout
        if name == "v" and action == glfw.PRESS and modifiers & (glfw.MOD_CONTROL | glfw.MOD_SUPER):
            self._paste()
        elif name in ("a", "z", "y") or len(name) > 1:
            self._add(Held(name, action == glfw.PRESS))

    def text(self, codepoint: int) -> None:
        """To be called for each character that is typed in the window."""
        self._add(Typed(chr(codepoint)))

    def _paste(self) -> None:
        """As if it were typed; nothing is typed while Ctrl is held."""
        self._add(Held("mod_ctrl", False))
        self._add(Held("mod_super", False))
        pasted: bytes = self._glfw.get_clipboard_string(None) or b""
        self._add(Typed(pasted[:_LONGEST_BYTES].decode(errors="ignore")))

    def _begin(self) -> None:
        """Callbacks stay for good: glfw's Python module cannot take one back."""
        glfw, handle = self._glfw, self._handle
        if not self._begun:
            self._begun = True
            glfw.set_cursor_pos_callback(handle, self._on_move)
            glfw.set_mouse_button_callback(handle, self._on_button)
            glfw.set_scroll_callback(handle, self._on_wheel)
            glfw.set_cursor_enter_callback(handle, self._on_enter)
            glfw.set_window_focus_callback(handle, self._on_focus)
        self._on_move(handle, *glfw.get_cursor_pos(handle))

    def _on_move(self, _: object, x: float, y: float) -> None:
        """From units of the screen to pixels, which are not the same on all screens."""
        glfw, handle = self._glfw, self._handle
        window, pixels = glfw.get_window_size(handle), glfw.get_framebuffer_size(handle)
        if min(window) > 0:
            self._add(Moved(x * pixels[0] / window[0], y * pixels[1] / window[1]))

    def _on_button(self, _: object, button: int, action: int, modifiers: int) -> None:
        if button <= self._glfw.MOUSE_BUTTON_MIDDLE:
            self._add(Button(button, action == self._glfw.PRESS))

    def _on_wheel(self, _: object, across: float, up: float) -> None:
        self._add(Wheel(across, up))

    def _on_enter(self, _: object, entered: int) -> None:
        """A mouse that has left is nowhere near anything, unless it drags something."""
        if not entered and not self._glfw.get_mouse_button(self._handle, self._glfw.MOUSE_BUTTON_LEFT):
            self._add(Moved(-1e6, -1e6))

    def _on_focus(self, _: object, focused: int) -> None:
        if not focused:
            self._add(Left())

    def _add(self, found: Input) -> None:
        if not self._on:
            return
        if self._inputs and isinstance(found, Moved) and isinstance(self._inputs[-1], Moved):
            self._inputs[-1] = found
        elif len(self._inputs) < _MOST:
            self._inputs.append(found)


def _names(glfw: Any) -> dict[int, str]:
    """What keys are called that do something in a field of text, or to the mouse."""
    names = {
        "TAB": "tab", "LEFT": "left_arrow", "RIGHT": "right_arrow", "UP": "up_arrow", "DOWN": "down_arrow",
        "HOME": "home", "END": "end", "PAGE_UP": "page_up", "PAGE_DOWN": "page_down", "INSERT": "insert",
        "DELETE": "delete", "BACKSPACE": "backspace", "ENTER": "enter", "KP_ENTER": "keypad_enter",
        "ESCAPE": "escape", "LEFT_CONTROL": "mod_ctrl", "RIGHT_CONTROL": "mod_ctrl", "LEFT_SHIFT": "mod_shift",
        "RIGHT_SHIFT": "mod_shift", "LEFT_SUPER": "mod_super", "RIGHT_SUPER": "mod_super",
    }  # fmt: skip
    return {getattr(glfw, f"KEY_{key}"): name for key, name in names.items()}
