"""Where the interface appears: a GLFW window, or a texture in a headless context for tests and remote use.

Both run the same frame; only the source of events and the place of the pixels differ.
"""

import ctypes
from pathlib import Path

import numpy as np

from renderer.errors import UnavailableError
from renderer.formats.images import write_png
from renderer.gpu.gl import GlContext, Texture, has_display
from renderer.window.app.main_window import MainWindow
from renderer.window.controls import theme
from renderer.window.controls.toolkit import glfw, imgui, implot
from renderer.window.state import open_files, save_files
from renderer.window.state.app_state import AppState

IDLE_WAIT = 0.1  # seconds to wait for an event when nothing moves
MAX_DELTA_SECONDS = 0.1  # seconds that a frame counts for at most: a slow one must not look like a key held down
COMPUTE_WAIT = 1 / 60  # seconds to wait for one while only a compute device works

COMMON_KEYS = [
    *"ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    *(f"F{n}" for n in range(1, 13)),
    "SPACE",
    "ENTER",
    "ESCAPE",
    "TAB",
    "BACKSPACE",
]
COMMON_KEYS += ["HOME", "DELETE", "PAGE_UP", "PAGE_DOWN", "EQUAL", "MINUS", "PERIOD", "COMMA", "SLASH", "LEFT_BRACKET"]
COMMON_KEYS += ["RIGHT_BRACKET"]
KEYS = {getattr(glfw, f"KEY_{name}"): getattr(imgui.Key, name.lower()) for name in COMMON_KEYS}
KEYS |= {
    getattr(glfw, f"KEY_{name}"): getattr(imgui.Key, f"{name.lower()}_arrow")
    for name in ("LEFT", "RIGHT", "UP", "DOWN")
}
KEYS |= {getattr(glfw, f"KEY_{digit}"): getattr(imgui.Key, f"_{digit}") for digit in range(10)}


class UiContext:
    """The interface of one AppState in its own Dear ImGui context."""

    def __init__(self, app: AppState, gl: GlContext, scale: float):
        self.app, self.gl, self.scale = app, gl, scale
        self._last = app.now()
        io = imgui.get_io()
        io.set_ini_filename("")  # the session file keeps what is worth keeping
        self.fonts = theme.apply(scale)
        self.main_window = MainWindow(app, self.fonts, scale)

    def frame(self, target) -> None:
        """Draws one frame into the framebuffer `target`, then lets the panels draw; Dear ImGui has a frame begun."""
        io = imgui.get_io()
        pixels = io.display_framebuffer_scale.x or 1.0
        self.main_window.draw(io.display_size.x, io.display_size.y)
        imgui.render()
        target.use()
        target.clear(*theme.BACKGROUND)
        imgui.backends.opengl3_render_draw_data(imgui.get_draw_data())
        self._write_window_screenshot(io, pixels)
        now = self.app.now()
        self.app.advance(now, min(now - self._last, 0.25), pixels)
        self._last = now
        save_files.write_pending_screenshot(self.app)
        open_files.reload_changed_files(self.app, now)
        self.gl.ctx.gc()

    def _write_window_screenshot(self, io, pixels: float) -> None:
        """Writes the frame that was just built where a picture of the window is asked for."""
        path, self.app.pending_window_screenshot = self.app.pending_window_screenshot, None
        if path is not None:
            target = RenderTarget(self.gl, (int(io.display_size.x * pixels), int(io.display_size.y * pixels)))
            target.framebuffer.use()
            target.framebuffer.clear(*theme.BACKGROUND)
            imgui.backends.opengl3_render_draw_data(imgui.get_draw_data())
            write_png(path, target.pixels())
            self.app.show_message(f"wrote {path.name}")


class RenderTarget:
    """An 8-bit texture that a frame is drawn into."""

    def __init__(self, gl: GlContext, size: tuple[int, int]):
        self.texture = Texture(gl, size, 4, "f1")
        self.framebuffer = self.texture.framebuffer

    def pixels(self) -> np.ndarray:
        """(height, width, 3) uint8, row 0 on top: Dear ImGui draws as windows do, with row 0 of GL at the bottom."""
        return np.ascontiguousarray(self.texture.read()[::-1, :, :3])


class OffscreenWindow:
    """The interface in a texture of a headless context; events are injected through `imgui.get_io()`."""

    def __init__(self, app: AppState, gl: GlContext, size: tuple[int, int], scale: float = 1.0):
        self.gl, self.app = gl, app
        imgui.create_context()
        implot.create_context()
        imgui.backends.opengl3_init("#version 330")
        self.ui = UiContext(app, gl, scale)
        self.resize(size)
        self._last = app.now()

    def resize(self, size: tuple[int, int]) -> None:
        self.target = RenderTarget(self.gl, size)

    def frame(self) -> None:
        """One frame with the events injected since the last one."""
        io, now = imgui.get_io(), self.app.now()
        io.display_size = imgui.ImVec2(*self.target.texture.size)
        io.delta_time = min(max(now - self._last, 1e-4), MAX_DELTA_SECONDS)
        self._last = now
        imgui.backends.opengl3_new_frame()
        imgui.new_frame()
        self.ui.frame(self.target.framebuffer)

    def pixels(self) -> np.ndarray:
        return self.target.pixels()

    def close(self) -> None:
        self.app.close()
        imgui.backends.opengl3_shutdown()
        implot.destroy_context()
        imgui.destroy_context()


class Window:
    """One GLFW window with a GL 3.3 core context. Use: window = Window(...); window.run(app); window.close()."""

    def __init__(self, size: tuple[int, int], title: str):
        _init_glfw()
        self.handle = _create_window(size, title)
        glfw.make_context_current(self.handle)
        glfw.swap_interval(0)
        self.gl = GlContext.from_window()
        self.scale = max(glfw.get_window_content_scale(self.handle)[0], 0.5)
        self._dropped: list[Path] = []
        self._fullscreen: tuple[int, int, int, int] | None = None
        self._modifiers: dict = {}
        glfw.set_key_callback(self.handle, self._on_key)
        glfw.set_drop_callback(self.handle, lambda _, paths: self._dropped.extend(map(Path, paths)))
        imgui.create_context()
        implot.create_context()
        address = ctypes.cast(self.handle, ctypes.c_void_p).value
        imgui.backends.glfw_init_for_opengl(address, True)  # after our callbacks: it calls them in turn
        imgui.backends.opengl3_init("#version 330")

    def run(self, app: AppState) -> None:
        """Runs until the user leaves."""
        ui = UiContext(app, self.gl, self.scale)
        ui.main_window.modifiers_at_press = self._modifiers
        app.wake = glfw.post_empty_event
        clean = False
        try:
            while not (glfw.window_should_close(self.handle) or app.quit_requested):
                self._frame(app, ui)
            clean = True
        except KeyboardInterrupt:
            clean = True
            raise
        finally:
            app.close(clean)

    def _frame(self, app: AppState, ui: UiContext) -> None:
        activity = app.activity(app.now())
        if activity == "drawing":
            glfw.poll_events()
        else:
            glfw.wait_events_timeout(COMPUTE_WAIT if activity == "waiting" else IDLE_WAIT)
        if self._dropped:
            paths, self._dropped = self._dropped, []
            open_files.drop(app, paths)
        if app.fullscreen != (self._fullscreen is not None):
            self._switch_fullscreen()
        imgui.backends.opengl3_new_frame()
        imgui.backends.glfw_new_frame()
        io = imgui.get_io()
        io.delta_time = min(io.delta_time, MAX_DELTA_SECONDS)
        imgui.new_frame()
        self.gl.screen.viewport = (0, 0, *glfw.get_framebuffer_size(self.handle))
        ui.frame(self.gl.screen)
        glfw.swap_buffers(self.handle)

    def _on_key(self, handle, key: int, scancode: int, action: int, mods: int) -> None:
        if action == glfw.PRESS and key in KEYS:
            control = bool(mods & (glfw.MOD_CONTROL | glfw.MOD_SUPER))
            self._modifiers[KEYS[key]] = (control, bool(mods & glfw.MOD_SHIFT), bool(mods & glfw.MOD_ALT))

    def _switch_fullscreen(self) -> None:
        if self._fullscreen is None:
            self._fullscreen = (*glfw.get_window_pos(self.handle), *glfw.get_window_size(self.handle))
            monitor = glfw.get_primary_monitor()
            mode = glfw.get_video_mode(monitor)
            glfw.set_window_monitor(self.handle, monitor, 0, 0, *mode.size, mode.refresh_rate)
        else:
            glfw.set_window_monitor(self.handle, None, *self._fullscreen, 0)
            self._fullscreen = None

    def close(self) -> None:
        imgui.backends.opengl3_shutdown()
        imgui.backends.glfw_shutdown()
        implot.destroy_context()
        imgui.destroy_context()
        glfw.destroy_window(self.handle)
        glfw.terminate()


def _create_window(size: tuple[int, int], title: str):
    """The GLFW window with the newest GL core context of 4.3, 4.0 and 3.3 that there is."""
    glfw.window_hint(glfw.OPENGL_PROFILE, glfw.OPENGL_CORE_PROFILE)
    glfw.window_hint(glfw.OPENGL_FORWARD_COMPAT, glfw.TRUE)
    glfw.window_hint(glfw.SCALE_TO_MONITOR, glfw.TRUE)
    for major, minor in ((4, 3), (4, 0), (3, 3)):
        glfw.window_hint(glfw.CONTEXT_VERSION_MAJOR, major)
        glfw.window_hint(glfw.CONTEXT_VERSION_MINOR, minor)
        try:
            handle = glfw.create_window(*size, title, None, None)
            if handle:
                return handle
            reason = "GLFW makes none"
        except glfw.GLFWError as error:
            reason = str(error)
    glfw.terminate()
    raise UnavailableError(f"no window with OpenGL 3.3: {reason}. `rayfold doctor` says what GL is there")


def _init_glfw() -> None:
    """Starts GLFW, or says what to do where there is no display."""
    glfw.ERROR_REPORTING = "exception"
    advice = "`rayfold export` draws without one; `ssh -X` brings one; `xvfb-run -a rayfold view` makes one"
    if not has_display():
        raise UnavailableError(f"no display: neither DISPLAY nor WAYLAND_DISPLAY is set. {advice}")
    try:
        started = glfw.init()
        reason = "GLFW does not start"
    except glfw.GLFWError as error:
        started, reason = False, str(error)
    if not started:
        raise UnavailableError(f"no display: {reason}. {advice}")
