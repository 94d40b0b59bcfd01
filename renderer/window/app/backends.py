"""The back ends of the interface: a GLFW window, and a texture of a headless context for tests and remote use.

Both draw the same frame; only the source of events and the render target differ.
"""

import ctypes
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from renderer.errors import UnavailableError, UserError
from renderer.formats.images import write_png
from renderer.gpu.gl import GlContext, Texture, has_display
from renderer.plain import printable
from renderer.system.process import StopFlag
from renderer.window.app.idle import IdleWatch
from renderer.window.app.main_window import MainWindow
from renderer.window.boundary import MAX_LOGGED, allow_recovery, contained
from renderer.window.controls import glfw, imgui, imguizmo, implot, theme
from renderer.window.controls.file_dialog import has_system_dialog
from renderer.window.controls.shortcuts import Modifiers
from renderer.window.state import AppState, edit_actions, main_loop, open_files, save_files, unsaved

# Fraction of the time for window frames while panels refine: software GL draws both on the same cores. So a panel
# that refines waits up to (time of a frame) / FRAME_FRACTION between two displays; each display needs a frame.
FRAME_FRACTION = 0.02
MAX_DISPLAY_INTERVAL = 3.0  # limit of this interval in seconds, however slow a frame is
MAX_DELTA_SECONDS = 0.1  # largest io.delta_time: a slow frame must not look like a held key
MAX_FAILED_FRAMES = 3  # consecutive failed frames that end the window
# Dear ImGui spreads queued events of several kinds over frames. So at most this many frames are drawn before a button's
# release is added: for the motion to the control, the press and the drag.
MAX_QUEUED_FRAMES = 3
CHORD_KEYS = {getattr(glfw, f"KEY_{side}_{name}") for side in ("LEFT", "RIGHT") for name in ("CONTROL", "ALT", "SUPER")}
EDITING_KEYS = range(glfw.KEY_ENTER, glfw.KEY_END + 1)  # and Tab, Backspace, Insert, Delete, arrows, Page Up, Home
MAX_TICK_SECONDS = 0.25  # a frame advances scene times by at most this

# GLFW's key number -> Dear ImGui's key, by the name. The names of arrows and digits are adapted. Keys whose names
# differ otherwise, such as Ctrl and the keypad, collect under None, which no event of GLFW has: they are not looked up.
KEYS: dict[int | None, imgui.Key] = {
    getattr(glfw, f"KEY_{name.removesuffix('_arrow').lstrip('_').upper()}", None): key
    for name, key in imgui.Key.__members__.items()
}


def render(framebuffer: Any) -> None:
    """Draws the last frame that Dear ImGui has rendered."""
    framebuffer.use()
    framebuffer.clear(*theme.BACKGROUND)
    imgui.backends.opengl3_render_draw_data(imgui.get_draw_data())


def read_pixels(texture: Texture) -> np.ndarray:
    """A rendered frame, (height, width, 3) uint8, the top row first; in GL the bottom row is first."""
    height, width = texture.shape[:2]
    return np.ascontiguousarray(texture.read_region(0, 0, width, height, 3)[::-1])


class Contexts:
    """The contexts of Dear ImGui and ImPlot of one window; the constructor makes them current."""

    def __init__(self):
        self._imgui = imgui.create_context()
        imgui.set_current_context(self._imgui)
        self._implot = implot.create_context()
        self.make_current()

    def make_current(self) -> None:
        """Makes the functions of Dear ImGui work on this window."""
        imgui.set_current_context(self._imgui)
        implot.set_current_context(self._implot)
        imguizmo.set_im_gui_context(self._imgui)

    def destroy(self) -> None:
        """Destroys the contexts of Dear ImGui and ImPlot."""
        implot.destroy_context(self._implot)
        imgui.destroy_context(self._imgui)


class UiContext:
    """The user interface of one AppState in the current Dear ImGui context."""

    def __init__(self, app: AppState, gl: GlContext, scale: float):
        self.app, self.gl, self.scale = app, gl, scale
        self._last_frame_at, self._failed_frames = app.now(), 0  # seconds; failed frames since the last good one
        allow_recovery()
        imgui.get_io().set_ini_filename("")  # the session file keeps the layout
        self.main_window = MainWindow(app, theme.apply(scale), scale)
        self.idle = IdleWatch(app)

    def frame(self, new_frame: Callable[[], None], framebuffer: object) -> None:
        """Calls new_frame(), draws one frame into `framebuffer`, then lets panels draw.

        Errors are contained in the regions of a frame. A frame that fails outside of them is dropped; the last of
        MAX_FAILED_FRAMES in a row raises its error, and a lost device raises UnavailableError.
        """
        self._failed_frames += 1
        dropped = contained("a frame of the window", lambda error, sentence: self.app.show_message(sentence))
        with nullcontext() if self._failed_frames >= MAX_FAILED_FRAMES else dropped:
            self._frame(new_frame, framebuffer)
            self._failed_frames = 0
        if self.app.loop.lost_device:
            raise UnavailableError(self.app.loop.lost_device)

    def _frame(self, new_frame: Callable[[], None], framebuffer: object) -> None:
        """Draws the interface, then advances panels by the time since the last frame, then writes and reads files."""
        if imgui.get_current_context().within_frame_scope:
            imgui.end_frame()  # the last frame failed before its end
        new_frame()
        io, began = imgui.get_io(), self.app.now()
        pixels = io.display_framebuffer_scale.x or 1.0  # per window unit
        self.main_window.draw(io.display_size.x, io.display_size.y)
        imgui.render()
        render(framebuffer)
        if self.gl.software:  # the time of a frame is known once its drawing has finished
            self.gl.ctx.finish()
            self.app.loop.display_interval = min((self.app.now() - began) / FRAME_FRACTION, MAX_DISPLAY_INTERVAL)
        self._write_window_screenshot(int(io.display_size.x * pixels), int(io.display_size.y * pixels))
        now = self.app.now()
        main_loop.advance(self.app, now, min(now - self._last_frame_at, MAX_TICK_SECONDS), pixels)
        self._last_frame_at = now
        with self.app.errors_as_messages("writing a screenshot"):
            save_files.write_pending_screenshot(self.app)
        with self.app.errors_as_messages("looking for edited files"):
            open_files.reload_changed_files(self.app, now)
            open_files.report_reload(self.app)
        self.gl.ctx.gc()  # frees the GL objects that Python has collected

    def _write_window_screenshot(self, width: int, height: int) -> None:
        """Writes the frame to the path of a requested screenshot of the window."""
        path, self.app.screenshots.window = self.app.screenshots.window, None
        if path is None:
            return
        with self.app.errors_as_messages("writing a screenshot"):
            texture = self.gl.texture((width, height), 4, "f1")
            render(texture.framebuffer)
            write_png(path, read_pixels(texture))
            self.app.show_message(f"wrote {path.name}")


class OffscreenWindow:
    """The window in a texture of a headless context; events are added to `imgui.get_io()`."""

    def __init__(self, app: AppState, gl: GlContext, size: tuple[int, int], scale: float = 1.0):
        self.gl, self.app = gl, app
        self._contexts = Contexts()
        imgui.backends.opengl3_init("#version 330")
        self.ui = UiContext(app, gl, scale)
        self._texture, self._units, self._ratio = gl.texture(size, 4, "f1"), size, 1.0
        self._last_frame_at = app.now()

    def make_current(self) -> None:
        """Makes the functions of Dear ImGui work on this window, as several may be open."""
        self._contexts.make_current()

    def resize(self, size: tuple[int, int], ratio: float = 1.0) -> None:
        """Sets the size in window units, and the number of pixels per unit."""
        self._units, self._ratio = size, ratio
        width, height = (max(round(side * ratio), 1) for side in size)
        self._texture = self.gl.texture((width, height), 4, "f1")

    def frame(self) -> None:
        """Draws one frame with the events added since the last one."""
        io, now = imgui.get_io(), self.app.now()
        io.display_size = imgui.ImVec2(*self._units)
        io.display_framebuffer_scale = imgui.ImVec2(self._ratio, self._ratio)
        io.delta_time = min(max(now - self._last_frame_at, 1e-4), MAX_DELTA_SECONDS)
        self._last_frame_at = now
        self.ui.frame(self._new_frame, self._texture.framebuffer)

    def _new_frame(self) -> None:
        imgui.backends.opengl3_new_frame()
        imgui.new_frame()

    def pixels(self) -> np.ndarray:
        """The last frame, (height, width, 3) uint8, the top row first."""
        return read_pixels(self._texture)

    def close(self) -> None:
        """Saves the session and destroys the contexts; the session is not marked clean if an error ends the window."""
        self.make_current()
        self.app.close(clean=not isinstance(sys.exception(), Exception))
        imgui.backends.opengl3_shutdown()
        self._contexts.destroy()


class Window:
    """A GLFW window with a GL core context. Use: window = Window(...); window.run(app); window.close()."""

    def __init__(self, size: tuple[int, int], title: str):
        _init_glfw()
        if monitor := glfw.get_primary_monitor():  # a window larger than its display has controls that nobody sees
            size = tuple(map(min, size, glfw.get_monitor_workarea(monitor)[2:]))
        self.handle = _create_window(size, title)
        glfw.make_context_current(self.handle)
        glfw.swap_interval(0)
        self.gl = GlContext.from_window()
        self.scale = max(glfw.get_window_content_scale(self.handle)[0], 0.5)
        self._ui: UiContext | None = None  # the context of the last frame
        self._dropped: list[Path] = []  # files dropped on the window since the last frame
        self._windowed_rect: tuple[int, int, int, int] | None = None  # position and size to restore after full screen
        self._modifiers_at_press: dict[imgui.Key, Modifiers] = {}
        self._chord = (False, False)  # Ctrl and Alt at the last press of a key
        self._editing_key = 0  # the last of EDITING_KEYS that was pressed, while it is held
        self._tab_frames = 0  # frames to draw until a field that Tab reaches takes what is typed
        self._is_damaged = True  # the window system asks for a new frame
        self._reports: list[str] = []  # errors of GLFW since the last frame
        self._reported: set[str] = set()  # errors of GLFW that were printed
        self._title = title
        glfw.set_window_refresh_callback(self.handle, self._on_damage)
        glfw.set_framebuffer_size_callback(self.handle, self._on_damage)
        glfw.set_key_callback(self.handle, self._on_key)
        glfw.set_mouse_button_callback(self.handle, self._on_button)
        glfw.set_drop_callback(self.handle, self._on_drop)
        self._contexts = Contexts()
        address = ctypes.cast(self.handle, ctypes.c_void_p).value
        assert address is not None
        imgui.backends.glfw_init_for_opengl(address, True)  # after our callbacks, which it chains
        imgui.backends.opengl3_init("#version 330")
        glfw.set_error_callback(self._on_error)  # from here on no error of GLFW raises

    def run(self, app: AppState, stop: StopFlag) -> None:
        """Runs the main loop of `app` until the user quits or `stop` is set, then closes `app`.

        Sets app.wake and stop.wake, which end the wait for events from another thread.
        """
        ui = UiContext(app, self.gl, self.scale)
        ui.main_window.modifiers_at_press = self._modifiers_at_press
        app.wake = stop.wake = glfw.post_empty_event
        app.file_watcher.listen(app.wake)
        app.native_dialogs = has_system_dialog()
        clean = True
        try:
            while not (app.loop.quit_requested or stop.is_set):
                if glfw.window_should_close(self.handle):
                    glfw.set_window_should_close(self.handle, False)
                    self._is_damaged = True
                    unsaved.quit(app)
                self.frame(app, ui)
        except Exception:  # noted in the session, then raised again
            clean = False
            raise
        finally:
            app.close(clean)

    def frame(self, app: AppState, ui: UiContext) -> None:
        """Waits for events as the activity allows, then draws one frame."""
        self._ui = ui
        with app.errors_as_messages("an event of the window system"):
            self._take_events(ui.idle.wait())
        # Input that Dear ImGui's queue does not hold
        had_input, self._is_damaged = self._is_damaged or bool(self._dropped), False
        self._show_title(app)
        if self._dropped:
            paths, self._dropped = self._dropped, []
            with app.errors_as_messages("a drop"):
                edit_actions.drop(app, paths)
        fullscreen = app.overlays.fullscreen
        if self._windowed_rect is not None and not glfw.get_window_monitor(self.handle):
            fullscreen.is_on = False  # the window's monitor was unplugged
        if fullscreen.is_on != (self._windowed_rect is not None):
            with app.errors_as_messages("full screen"):
                self._toggle_fullscreen()
            fullscreen.is_on = self._windowed_rect is not None
            had_input = True
        if not ui.idle.needs_frame(had_input):
            return
        ui.frame(self._new_frame, self.gl.screen)
        self._tab_frames = max(self._tab_frames - 1, 0)
        with app.errors_as_messages("showing a frame"):
            glfw.swap_buffers(self.handle)
        if self._reports:
            app.show_message("; ".join(self._reports))
            self._reports = []

    def _show_title(self, app: AppState) -> None:
        """Names the active panel's scene in the window's title, marked while work is not saved."""
        is_marked = app.code_changed is not None or any(panel.has_unsaved_work for panel in app.panels)
        title = f"{'* ' if is_marked else ''}{printable(app.panel.scene.title, 100)} - Rayfold"
        if title != self._title:
            self._title = title
            glfw.set_window_title(self.handle, title)

    def _take_events(self, wait: float) -> None:
        """Waits at most `wait` seconds for events. GLFW's binding raises the exceptions of our callbacks here."""
        try:
            glfw.wait_events_timeout(wait) if wait else glfw.poll_events()
        except UnicodeDecodeError as error:
            raise UserError("drop: a name is not UTF-8 text, so nothing was opened; rename the file") from error

    def _new_frame(self) -> None:
        imgui.backends.opengl3_new_frame()
        imgui.backends.glfw_new_frame()
        io = imgui.get_io()
        io.delta_time = min(io.delta_time, MAX_DELTA_SECONDS)
        imgui.new_frame()
        self.gl.screen.viewport = (0, 0, *glfw.get_framebuffer_size(self.handle))

    def _on_damage(self, *_: object) -> None:
        self._is_damaged = True

    def _on_key(self, handle: object, key: int, scancode: int, action: int, mods: int) -> None:
        """Draws queued frames before an event that must not come in one frame with the events before it.

        The release of Ctrl or Alt: a chord in the same frame would be its key alone. A press after such a release: it
        would have no effect in the frame of the release. A press while an editing key is held: of two presses in one
        frame, text editors take one. A press after Tab: the field that Tab reaches takes characters from the second
        frame on.
        """
        if action == glfw.PRESS and self._ui is not None:
            for _ in range(self._tab_frames):
                self._ui.frame(self._new_frame, self.gl.screen)
            self._tab_frames = 2 if key == glfw.KEY_TAB else 0
        if action == glfw.RELEASE and key in CHORD_KEYS:
            self._draw_queued()
        if action == glfw.RELEASE and key == self._editing_key:
            self._editing_key = 0
        if action == glfw.PRESS and key in KEYS:
            control = bool(mods & (glfw.MOD_CONTROL | glfw.MOD_SUPER))
            held = (control, bool(mods & glfw.MOD_SHIFT), bool(mods & glfw.MOD_ALT))
            if (held[0], held[2]) != self._chord or key in EDITING_KEYS and self._editing_key:
                self._draw_queued()
            self._editing_key = key if key in EDITING_KEYS else self._editing_key
            self._modifiers_at_press[KEYS[key]], self._chord = held, (held[0], held[2])

    def _on_button(self, handle: object, button: int, action: int, mods: int) -> None:
        """Draws the frames of a drag before its release: in one frame a control would see the release alone.

        Dear ImGui's callback, which follows, adds the release.
        """
        if action == glfw.RELEASE:
            self._draw_queued()

    def _draw_queued(self) -> None:
        """Draws the frames of the events that wait."""
        for _ in range(MAX_QUEUED_FRAMES):
            if self._ui is not None and imgui.get_current_context().input_events_queue:
                self._ui.frame(self._new_frame, self.gl.screen)

    def _on_drop(self, handle: object, paths: list[str]) -> None:
        self._dropped.extend(map(Path, paths))

    def _on_error(self, code: int, description: bytes) -> None:
        """Keeps an error of GLFW, such as a clipboard without a text, for a message; prints a new one."""
        text = printable(description.decode("utf-8", "replace"))
        text = "the clipboard holds no text" if code == glfw.FORMAT_UNAVAILABLE else f"window system: {text}"
        if text not in self._reports:
            self._reports.append(text)
        if text not in self._reported and len(self._reported) < MAX_LOGGED:
            self._reported.add(text)
            print(f"rayfold: {text}", file=sys.stderr)

    def _toggle_fullscreen(self) -> None:
        """Fills the primary monitor, or returns to the window's earlier place and size."""
        if self._windowed_rect is None:
            monitor = glfw.get_primary_monitor()
            if not monitor:
                raise UserError("full screen: no monitor is connected")
            mode = glfw.get_video_mode(monitor)
            self._windowed_rect = (*glfw.get_window_pos(self.handle), *glfw.get_window_size(self.handle))
            glfw.set_window_monitor(self.handle, monitor, 0, 0, *mode.size, mode.refresh_rate)
        else:
            glfw.set_window_monitor(self.handle, None, *self._windowed_rect, 0)
            self._windowed_rect = None

    def close(self) -> None:
        """Destroys the window and the contexts of Dear ImGui."""
        imgui.backends.opengl3_shutdown()
        imgui.backends.glfw_shutdown()
        self._contexts.destroy()
        glfw.destroy_window(self.handle)
        glfw.terminate()


def _create_window(size: tuple[int, int], title: str) -> Any:
    """A GLFW window with a GL core context of version 4.3, 4.0 or 3.3, the newest available."""
    glfw.window_hint(glfw.OPENGL_PROFILE, glfw.OPENGL_CORE_PROFILE)
    glfw.window_hint(glfw.OPENGL_FORWARD_COMPAT, glfw.TRUE)
    glfw.window_hint(glfw.SCALE_TO_MONITOR, glfw.TRUE)
    reason = ""
    for major, minor in ((4, 3), (4, 0), (3, 3)):
        glfw.window_hint(glfw.CONTEXT_VERSION_MAJOR, major)
        glfw.window_hint(glfw.CONTEXT_VERSION_MINOR, minor)
        try:
            return glfw.create_window(*size, title, None, None)
        except glfw.GLFWError as error:  # raised for every failure; see _init_glfw()
            reason = str(error)
    glfw.terminate()
    raise UnavailableError(f"no window with OpenGL 3.3: {reason}. `rayfold doctor` lists what OpenGL is available")


def _init_glfw() -> None:
    """Initializes GLFW; raises UnavailableError with advice if there is no display."""
    glfw.ERROR_REPORTING = "exception"
    glfw.set_error_callback(None)  # an earlier window's set its own
    advice = (
        "`rayfold export` needs none; `ssh -X` forwards one; `xvfb-run -a rayfold view` creates one; "
        "`rayfold serve` shows the window in a browser"
    )
    if not has_display():
        raise UnavailableError(f"no display: neither DISPLAY nor WAYLAND_DISPLAY is set. {advice}")
    try:
        glfw.init()
    except glfw.GLFWError as error:  # with ERROR_REPORTING, every failure raises
        raise UnavailableError(f"no display: {error}. {advice}") from error
