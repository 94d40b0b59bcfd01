"""The window in a browser: frames as JPEG over HTTP, input events back. For GPU machines without a display.

The server listens on this machine only unless another host is given; then each request needs the token of the printed
address. The page requests the next frame after it has shown the last (long polling), so a slow connection drops
frames instead of queueing them.
"""

import hmac
import json
import secrets
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from string import ascii_uppercase, digits
from urllib.parse import SplitResult, parse_qs, urlsplit

from renderer.errors import UnavailableError
from renderer.formats.images import encode_jpeg
from renderer.window.app.backends import OffscreenWindow
from renderer.window.controls.shortcuts import KEY_NAMES
from renderer.window.controls.toolkit import imgui
from renderer.window.remote.exchange import FrameExchange

PAGE = Path(__file__).with_name("page.html")
LOOPBACK = ("127.0.0.1", "localhost")
MAX_BODY_BYTES = 1 << 16  # of one request with events
FRAME_INTERVAL = 1 / 30  # seconds between two frames that are sent
EVENT_WAIT = {"drawing": 0.0, "waiting": 1 / 60, "idle": 0.25}  # seconds to wait for an event, by AppState.activity()
SIZES = (64, 4096)  # pixels a browser may ask for, a side

# JavaScript's KeyboardEvent.code -> Dear ImGui's key
KEYS = {f"Key{letter}": KEY_NAMES[letter] for letter in ascii_uppercase}
KEYS |= {f"Digit{digit}": KEY_NAMES[digit] for digit in digits}
KEYS |= {f"Arrow{side}": KEY_NAMES[side] for side in ("Left", "Right", "Up", "Down")}
KEYS |= {f"Bracket{side}": KEY_NAMES[f"{side}Bracket"] for side in ("Left", "Right")}
SAME_NAMES = "Space Enter Escape Tab Backspace Home End Delete PageUp PageDown Equal Minus Period Comma Slash"
KEYS |= {name: KEY_NAMES[name] for name in (*SAME_NAMES.split(), *(f"F{number}" for number in range(1, 13)))}


class RemoteServer:
    """The HTTP server on a thread of its own; `address` is what a browser opens."""

    def __init__(self, host: str, port: int):
        self.token = "" if host in LOOPBACK else secrets.token_urlsafe(16)
        self.exchange = FrameExchange()
        try:
            handler = type("Handler", (_Handler,), {"exchange": self.exchange, "token": self.token})
            self._server = ThreadingHTTPServer((host, port), handler)
        except OSError as error:
            raise UnavailableError(f"serve: cannot listen on {host}:{port}: {error.strerror}") from error
        self._server.daemon_threads = True
        query = f"?token={self.token}" if self.token else ""
        self.address = f"http://{host}:{self._server.server_address[1]}/{query}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name="http")
        self._thread.start()

    def run(self, window: OffscreenWindow) -> None:
        """Draws frames and handles events until the user quits."""
        sent_at = 0.0
        while not window.app.quit_requested:
            for event in self.exchange.take_events(EVENT_WAIT[window.app.activity(window.app.now())]):
                inject(window, event)
            window.frame()
            if self.exchange.has_viewer() and time.perf_counter() - sent_at > FRAME_INTERVAL:
                sent_at = time.perf_counter()
                self.exchange.publish_frame(window.pixels())

    def close(self) -> None:
        """Stops the server and joins its thread."""
        self.exchange.close()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def inject(window: OffscreenWindow, event: dict) -> None:
    """Passes one event of the browser to Dear ImGui; malformed events are ignored."""
    io = imgui.get_io()
    kind = event.get("kind")
    if kind == "move" and _are_numbers(event, "x", "y"):
        io.add_mouse_pos_event(float(event["x"]), float(event["y"]))
    elif kind == "button" and event.get("button") in (0, 1, 2):
        io.add_mouse_button_event(event["button"], event.get("down") is True)
        window.frame()  # a press and a release of one request need a frame each
    elif kind == "wheel" and _are_numbers(event, "y"):
        io.add_mouse_wheel_event(0.0, max(-10.0, min(10.0, float(event["y"]))))
    elif kind == "key" and event.get("code") in KEYS:
        for name in ("ctrl", "shift", "alt"):
            io.add_key_event(getattr(imgui.Key, f"mod_{name}"), event.get(name) is True)
        io.add_key_event(KEYS[event["code"]], event.get("down") is True)
        window.frame()
    elif kind == "text" and isinstance(event.get("text"), str):
        io.add_input_characters_utf8(event["text"][:16])
    elif kind == "focus":
        io.add_focus_event(event.get("focused") is True)
    elif kind == "resize" and _are_numbers(event, "width", "height"):
        low, high = SIZES
        width, height = (int(max(low, min(high, event[name]))) for name in ("width", "height"))
        window.resize((width, height))


def _are_numbers(event: dict, *names: str) -> bool:
    return all(type(value) in (int, float) and abs(value) < 1e6 for value in (event.get(name, "") for name in names))


class _Handler(BaseHTTPRequestHandler):
    """Answers requests; RemoteServer derives a class with the exchange and the token of one server."""

    exchange: FrameExchange
    token: str
    protocol_version = "HTTP/1.1"
    server_version = "Rayfold"
    timeout = 60

    def do_GET(self):
        url = urlsplit(self.path)
        if not self._allowed(url):
            return
        if url.path == "/":
            self._answer(200, PAGE.read_bytes(), "text/html; charset=utf-8")
        elif url.path == "/frame":
            self._send_frame(parse_qs(url.query).get("after", ["0"])[0])
        else:
            self._answer(404)

    def do_POST(self):
        url = urlsplit(self.path)
        length = self.headers.get("Content-Length", "")
        if not (length.isdigit() and int(length) <= MAX_BODY_BYTES):
            self.close_connection = True
            self._answer(413)
            return
        body = self.rfile.read(int(length))
        if not self._allowed(url):
            return
        if url.path != "/events" or self.headers.get("X-Rayfold") != "1":  # a header that other sites cannot send
            self._answer(403)
            return
        try:
            events = json.loads(body)
        except (ValueError, RecursionError):
            events = None
        if not (isinstance(events, list) and all(isinstance(event, dict) for event in events)):
            self._answer(400, b"events must be a list of objects")
            return
        self.exchange.post_events(events)
        self._answer(204)

    def _allowed(self, url: SplitResult) -> bool:
        """Checks the token; without one, the Host header, which defeats DNS rebinding. Answers 403 if refused."""
        header = self.headers.get("Authorization", "").removeprefix("Bearer ")
        given = header or parse_qs(url.query).get("token", [""])[0]
        host = (self.headers.get("Host") or "").partition(":")[0]
        allowed = host in LOOPBACK
        if self.token:
            allowed = hmac.compare_digest(given.encode(), self.token.encode())
        if not allowed:
            self._answer(403, b"this address needs its token")
        return allowed

    def _send_frame(self, after: str) -> None:
        result = self.exchange.wait_frame(int(after) if after.isdigit() and len(after) < 18 else 0)
        if result is None:
            self._answer(410)
        elif result[1] is None:
            self._answer(204)
        else:
            self._answer(200, encode_jpeg(result[1]), "image/jpeg", {"X-Frame": str(result[0])})

    def _answer(
        self, status: int, body: bytes = b"", content_type: str = "text/plain", extra: dict | None = None
    ) -> None:
        self.send_response(status)
        headers = {"Content-Type": content_type, "Content-Length": str(len(body)), "Cache-Control": "no-store"}
        headers |= {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", **(extra or {})}
        for name, value in headers.items():
            self.send_header(name, value)
        try:
            self.end_headers()
            self.wfile.write(body)
        except ConnectionError:
            self.close_connection = True  # the browser closed the connection

    def log_message(self, *arguments) -> None:
        """Logs nothing: stderr is for messages to the user."""
