"""The window in a browser: frames as JPEG over HTTP, input events back. For GPU machines without a display.

The server listens on this machine only unless another host is given; each request needs the token of the printed
address. The page requests the next frame after it has shown the last (long polling), so a slow connection drops
frames instead of queueing them.
"""

import secrets
import socket
import threading
import time
from typing import Any

from renderer.errors import UnavailableError
from renderer.window.app.backends import OffscreenWindow
from renderer.window.controls.toolkit import imgui
from renderer.window.remote.events import KEYS
from renderer.window.remote.exchange import FrameExchange
from renderer.window.remote.handler import Access, Server

ANY_ADDRESS = ("0.0.0.0", "::")
FRAME_INTERVAL = 1 / 30  # seconds between two frames that are sent
# seconds to wait for an event, by AppState.activity()
EVENT_WAIT = {"drawing": 0.0, "waiting": 1 / 60, "compiling": 1 / 30, "flipping": 1 / 10, "idle": 0.25}
SIZES = (64, 4096)  # pixels a browser may ask for, a side


class RemoteServer:
    """The HTTP server on a thread of its own; `address` is what a browser opens."""

    def __init__(self, host: str, port: int):
        self.exchange = FrameExchange()
        name = own_address(host) if host in ANY_ADDRESS else host
        self.token = secrets.token_urlsafe(16)
        access = Access(self.token, frozenset({"localhost", name.lower(), socket.gethostname().lower()}))
        try:
            self._server = Server(host, port, access, self.exchange)
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UnavailableError(f"serve: cannot listen on {host}:{port}: {reason}") from error
        shown = f"[{name}]" if ":" in name else name
        self.address = f"http://{shown}:{self._server.server_address[1]}/?token={self.token}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name="http")
        self._thread.start()

    def run(self, window: OffscreenWindow) -> None:
        """Draws frames and handles events until the user quits."""
        sent_at, is_sent = 0.0, False
        while not window.app.quit_requested:
            events = self.exchange.take_events(EVENT_WAIT[window.app.activity(window.app.now())])
            for event in events:
                with window.app.errors_as_messages("an event of the browser"):
                    inject(window, event)
            if window.ui.idle.needs_frame(bool(events)):
                window.frame()
                is_sent = False
            if not is_sent and self.exchange.has_viewer() and time.perf_counter() - sent_at > FRAME_INTERVAL:
                sent_at, is_sent = time.perf_counter(), True
                self.exchange.publish_frame(window.pixels())

    def close(self) -> None:
        """Stops the server and joins its thread."""
        self.exchange.close()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def own_address(host: str) -> str:
    """The address by which other machines reach this one, where the server listens on all of them (ANY_ADDRESS).

    That of the network card which leads outside, from the system's routing table: nothing is sent to the addresses for
    documentation (RFC 5737 and 3849). The host's name where there is none.
    """
    family, outside = (
        (socket.AF_INET6, "2001:db8::1") if ":" in host else (socket.AF_INET, "192.0.2.1")
    )  # RFC 3849, 5737
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((outside, 9))
            return str(probe.getsockname()[0])
    except OSError:
        return socket.gethostname()


def inject(window: OffscreenWindow, event: dict[str, Any]) -> None:
    """Passes one event, which read_events() has checked, to Dear ImGui."""
    io = imgui.get_io()
    kind = event["kind"]
    if kind == "move":
        io.add_mouse_pos_event(float(event["x"]), float(event["y"]))
    elif kind == "button":
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
        window.resize((width, height))
