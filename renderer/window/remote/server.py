"""The window in a browser: frames as JPEG over HTTP, input events back. For GPU machines without a display.

The server listens on this machine only, unless another host is given; each request needs the token of the printed
address. Each browser, up to MAX_VIEWERS, has a window with its size and its pixels a unit. One thread draws the windows
in turn. It waits for no connection: a page requests the next frame after it has shown the last (long polling), so that
a slow one drops frames in place of queueing them.
"""

import os
import re
import secrets
import socket
import stat
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from renderer.errors import UnavailableError
from renderer.gpu.cache import write_atomically
from renderer.host import user_id
from renderer.plain import Json
from renderer.system.process import StopFlag
from renderer.window.app.backends import OffscreenWindow
from renderer.window.controls.toolkit import imgui
from renderer.window.remote.events import KEYS
from renderer.window.remote.handler import Access, Server
from renderer.window.remote.viewers import FrameExchange, Viewers
from renderer.window.state.session import default_path

ANY_ADDRESS = ("0.0.0.0", "::")
# While panels refine: the fraction of the time that is spent on drawing, reading and sending frames, and the most
# seconds between two frames. The thread that does it also starts the draws of the device.
SENT_FRACTION, MAX_SENT_INTERVAL = 0.2, 0.25
FRAME_INTERVAL = 1 / 30  # seconds between two sent frames; also between two drawn ones, if there are several windows
MAX_WAIT = 5.0  # seconds between two checks for viewers that have left
RATIOS = (0.5, 4.0)  # pixels a unit that a browser may ask for
TOKEN = re.compile(r"[A-Za-z0-9_-]{22}")  # 16 random bytes
SIZES = (64, 4096)  # units a side that a browser may ask for; the second bounds the pixels too


class RemoteServer:
    """The HTTP server, on a thread; `address` is the URL for a browser, with the token."""

    def __init__(self, host: str, port: int):
        self.viewers = Viewers()
        name = own_address(host) if host in ANY_ADDRESS else host
        self.token = kept_token(default_path().with_name("serve-token"))
        access = Access(self.token, frozenset({"localhost", name.lower(), socket.gethostname().lower()}))
        try:
            self._server = Server(host, port, access, self.viewers)
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UnavailableError(f"serve: cannot listen on {host}:{port}: {reason}") from error
        shown = f"[{name}]" if ":" in name else name
        self.address = f"http://{shown}:{self._server.server_address[1]}/?token={self.token}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name="http")
        self._thread.start()

    def run(self, first: OffscreenWindow, open_window: Callable[[], OffscreenWindow], stop: StopFlag) -> None:
        """Draws frames and handles events until the user quits the first window or `stop` is set.

        Each further viewer gets a window of open_window(), which is closed when the viewer has left or quits it.
        """
        first.app.wake = stop.wake = self.viewers.wake.set
        first.app.file_watcher.listen(first.app.wake)
        shown = {self.viewers.first: Shown(first, self.viewers.first)}
        try:
            while not (first.app.loop.quit_requested or stop.is_set):
                self._open_and_close(shown, open_window)
                # the first window goes on without a viewer
                active = [one for one in shown.values() if one.window is first or one.exchange.has_viewer()]
                self.viewers.wake.wait(min([MAX_WAIT, *(one.wait(len(active)) for one in active)]))
                self.viewers.wake.clear()
                for one in active:
                    one.step(len(active))
        finally:
            for one in shown.values():
                if one.window is not first:
                    one.window.close()
            first.make_current()

    def _open_and_close(self, shown: dict[FrameExchange, "Shown"], open_window: Callable[[], OffscreenWindow]) -> None:
        """Opens a window for each new viewer, and closes the windows of viewers that have left."""
        self.viewers.forget_gone()
        present = self.viewers.all()
        for exchange in present:
            if exchange not in shown and not exchange.closed:
                window = open_window()
                window.app.wake = self.viewers.wake.set
                shown[exchange] = Shown(window, exchange)
        for exchange in [e for e in shown if e.closed or e not in present]:
            shown.pop(exchange).window.close()

    def close(self) -> None:
        """Stops the server and joins its thread."""
        self.viewers.close()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class Shown:
    """A window and the viewer that it is shown to."""

    def __init__(self, window: OffscreenWindow, exchange: FrameExchange):
        self.window, self.exchange = window, exchange
        self._drawn_at = self._sent_at = -1e9
        self._is_sent = False  # the frame drawn last was offered to the viewer

    def wait(self, count: int) -> float:
        """Seconds until the window has something to do besides its events; `count` windows are drawn."""
        self.window.make_current()
        now = time.perf_counter()
        wait = self.window.ui.idle.wait()
        if count > 1:  # a window draws no frame that is not sent, so that the others have their turn
            wait = max(wait, self._drawn_at + FRAME_INTERVAL - now)
        if not self._is_sent and self.exchange.has_viewer():
            wait = min(wait, self._sent_at + FRAME_INTERVAL - now)
        return max(wait, 0.0)

    def step(self, count: int) -> None:
        """Passes the events on, draws a frame if one is due, and offers it to the viewer."""
        window, exchange, now = self.window, self.exchange, time.perf_counter()
        window.make_current()
        events = exchange.take_events()
        for event in events:
            with window.app.errors_as_messages("an event of the browser"):
                inject(window, event)
        is_due = count == 1 or bool(events) or now - self._drawn_at >= FRAME_INTERVAL
        # needs_frame() is called even if no frame is due: before it returns False, it reloads edited files and lets
        # panels draw
        if window.ui.idle.needs_frame(bool(events)) and is_due:
            self._drawn_at, self._is_sent = now, False
            window.frame()
        if not self._is_sent and exchange.has_viewer() and time.perf_counter() - self._sent_at > FRAME_INTERVAL:
            self._sent_at, self._is_sent = time.perf_counter(), True
            exchange.wants_text = imgui.get_io().want_text_input
            exchange.publish_frame(window.pixels())
            if not window.gl.software:  # frames of software GL set the interval themselves
                window.app.loop.display_interval = min((time.perf_counter() - now) / SENT_FRACTION, MAX_SENT_INTERVAL)
        if window.app.loop.quit_requested:
            exchange.close()


def kept_token(path: Path) -> str:
    """The token of the user's servers, kept in a file that only the user can read, so that open tabs survive a restart.

    A file that is not a plain file of this user with mode 0600 is replaced. If none can be written, the token is new.
    """
    with suppress(OSError, ValueError):
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)), encoding="ascii") as file:
            token = file.read(64)
            if _is_private(os.fstat(file.fileno())) and TOKEN.fullmatch(token):
                return token
    token = secrets.token_urlsafe(16)
    with suppress(OSError):
        write_atomically(path, token.encode())  # a temporary file has mode 0600
    return token


def _is_private(state: os.stat_result) -> bool:
    """True for a plain file of this user that nobody else can read; Windows keeps others out of the folder."""
    is_shared = user_id() is not None and (state.st_uid != user_id() or bool(stat.S_IMODE(state.st_mode) & 0o077))
    return stat.S_ISREG(state.st_mode) and not is_shared


def own_address(host: str) -> str:
    """The address by which other machines reach this one, for a server that listens on all addresses (ANY_ADDRESS).

    It is the address of the network card that leads outside, by the system's routing table: nothing is sent to the
    addresses for documentation (RFC 5737 and 3849). The host's name if no card leads outside.
    """
    family, outside = (socket.AF_INET6, "2001:db8::1") if ":" in host else (socket.AF_INET, "192.0.2.1")
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((outside, 9))
            return str(probe.getsockname()[0])
    except OSError:
        return socket.gethostname()


def inject(window: OffscreenWindow, event: Json) -> None:
    """Passes one event, which read_events() has checked, to Dear ImGui."""
    io = imgui.get_io()
    kind = event["kind"]
    if kind == "move":
        io.add_mouse_pos_event(float(event["x"]), float(event["y"]))
    elif kind == "button":
        if event["down"]:
            window.frame()  # the press is on what was under the pointer in the last frame; a finger was on nothing
        io.add_mouse_button_event(event["button"], event["down"])
        window.frame()  # a press and a release of one request need a frame each
    elif kind == "wheel":
        io.add_mouse_wheel_event(0.0, max(-10.0, min(10.0, float(event["y"]))))
    elif kind == "key" and event["code"] in KEYS:
        for name in ("ctrl", "shift", "alt"):
            io.add_key_event(getattr(imgui.Key, f"mod_{name}"), event.get(name, False))
        io.add_key_event(KEYS[event["code"]], event["down"])
        window.frame()
    elif kind == "text":
        io.add_input_characters_utf8(event["text"])
    elif kind == "focus":
        io.add_focus_event(event["focused"])
    elif kind == "resize":
        low, high = SIZES
        width, height = (int(max(low, min(high, event[name]))) for name in ("width", "height"))
        ratio = max(RATIOS[0], min(RATIOS[1], event.get("ratio", 1.0), high / max(width, height)))
        window.resize((width, height), ratio)
