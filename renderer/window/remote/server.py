"""The window in a browser: frames over HTTP, events back. For GPU machines, which have no screens.

It listens on this machine only unless told otherwise; then every request needs the token in the printed address.
The page asks for the next frame and waits for it, so that a slow line drops frames instead of queueing them.
"""

import hmac
import json
import secrets
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np

from renderer.errors import UnavailableError
from renderer.formats.images import encode_jpeg
from renderer.window.app.backends import Offscreen
from renderer.window.controls.toolkit import imgui

PAGE = Path(__file__).with_name("page.html")
LOOPBACK = ("127.0.0.1", "localhost")
LARGEST_BODY = 1 << 16  # bytes of one batch of events
MOST_EVENTS = 2000  # that wait to be handled; more are dropped, the oldest first
PATIENCE = 10.0  # seconds that a request for the next frame may wait
WATCHED = 1.0  # seconds that frames are still made after the last request
FRAME = 1 / 30  # seconds between two frames that are sent
PATIENT = {"drawing": 0.0, "waiting": 1 / 60, "idle": 0.25}  # seconds to wait for an event
SIZES = (64, 4096)  # pixels a browser may ask for

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
KEYS = {f"Key{letter}": getattr(imgui.Key, letter.lower()) for letter in LETTERS}
KEYS |= {f"Digit{digit}": getattr(imgui.Key, f"_{digit}") for digit in range(10)}
KEYS |= {f"F{number}": getattr(imgui.Key, f"f{number}") for number in range(1, 13)}
KEYS |= {f"Arrow{side}": getattr(imgui.Key, f"{side.lower()}_arrow") for side in ("Left", "Right", "Up", "Down")}
KEYS |= {name: getattr(imgui.Key, name.lower()) for name in ("Space", "Enter", "Escape", "Tab", "Backspace", "Home")}
KEYS |= {name: getattr(imgui.Key, name.lower()) for name in ("End", "Delete", "Equal", "Minus", "Period", "Comma")}
KEYS |= {"PageUp": imgui.Key.page_up, "PageDown": imgui.Key.page_down, "Slash": imgui.Key.slash}
KEYS |= {"BracketLeft": imgui.Key.left_bracket, "BracketRight": imgui.Key.right_bracket}


class Mailbox:
    """What passes between the thread that draws and those that serve: events in, the newest frame out."""

    def __init__(self):
        self._condition = threading.Condition()
        self._events: list[dict] = []
        self._frame: np.ndarray | None = None
        self._number = 0
        self._closed = False
        self._waiting = 0
        self._asked = -1e9

    def post(self, events: list[dict]) -> None:
        with self._condition:
            self._events = (self._events + events)[-MOST_EVENTS:]
            self._condition.notify_all()

    def events(self, patience: float) -> list[dict]:
        """The events that came since the last call; waits up to `patience` seconds for one."""
        with self._condition:
            if not self._events and patience > 0:
                self._condition.wait_for(lambda: self._events, patience)
            events, self._events = self._events, []
            return events

    def show(self, pixels: np.ndarray) -> None:
        """The newest frame; one equal to the last is no new frame."""
        with self._condition:
            if self._frame is None or not np.array_equal(pixels, self._frame):
                self._frame, self._number = pixels, self._number + 1
                self._condition.notify_all()

    def next(self, after: int) -> tuple[int, np.ndarray | None] | None:
        """Number and pixels of a frame other than `after`; no pixels after a long wait; None once it is closed."""
        with self._condition:
            self._waiting += 1
            self._condition.wait_for(lambda: self._closed or self._number != after, PATIENCE)
            self._waiting -= 1
            self._asked = time.perf_counter()
            if self._closed:
                return None
            return self._number, self._frame if self._number != after else None

    def watched(self) -> bool:
        """Whether someone waits for a frame, or took one just now."""
        with self._condition:
            return self._waiting > 0 or time.perf_counter() - self._asked < WATCHED

    def close(self) -> None:
        with self._condition:
            self._closed = True
            self._condition.notify_all()


class Remote:
    """The server; `address` is what a browser opens."""

    def __init__(self, host: str, port: int):
        self.token = "" if host in LOOPBACK else secrets.token_urlsafe(16)
        self.mailbox = Mailbox()
        try:
            self._server = ThreadingHTTPServer((host, port), _handler(self.mailbox, self.token))
        except OSError as error:
            raise UnavailableError(f"serve: {host}:{port} cannot be listened on: {error.strerror}") from error
        self._server.daemon_threads = True
        self.address = f"http://{host}:{self._server.server_address[1]}/" + (
            f"?token={self.token}" if self.token else ""
        )
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name="http")
        self._thread.start()

    def run(self, screen: Offscreen) -> None:
        """Draws frames and handles events until the user leaves."""
        sent = 0.0
        while not screen.studio.leaving:
            for event in self.mailbox.events(PATIENT[screen.studio.activity(screen.studio.clock())]):
                inject(screen, event)
            screen.frame()
            if self.mailbox.watched() and time.perf_counter() - sent > FRAME:
                sent = time.perf_counter()
                self.mailbox.show(screen.pixels())

    def close(self) -> None:
        self.mailbox.close()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def inject(screen: Offscreen, event: dict) -> None:
    """Hands one event of the browser to Dear ImGui; one that makes no sense is left out."""
    io = imgui.get_io()
    kind = event.get("kind")
    if kind == "move" and _numbers(event, "x", "y"):
        io.add_mouse_pos_event(float(event["x"]), float(event["y"]))
    elif kind == "button" and event.get("button") in (0, 1, 2):
        io.add_mouse_button_event(event["button"], event.get("down") is True)
        screen.frame()  # a press and a release in one batch are two frames
    elif kind == "wheel" and _numbers(event, "y"):
        io.add_mouse_wheel_event(0.0, max(-10.0, min(10.0, float(event["y"]))))
    elif kind == "key" and event.get("code") in KEYS:
        for name in ("ctrl", "shift", "alt"):
            io.add_key_event(getattr(imgui.Key, f"mod_{name}"), event.get(name) is True)
        io.add_key_event(KEYS[event["code"]], event.get("down") is True)
        screen.frame()
    elif kind == "text" and isinstance(event.get("text"), str):
        io.add_input_characters_utf8(event["text"][:16])
    elif kind == "focus":
        io.add_focus_event(event.get("focused") is True)
    elif kind == "resize" and _numbers(event, "width", "height"):
        low, high = SIZES
        screen.resize(tuple(int(max(low, min(high, event[name]))) for name in ("width", "height")))


def _numbers(event: dict, *names: str) -> bool:
    values = [event.get(name) for name in names]
    return all(type(value) in (int, float) and abs(value) < 1e6 for value in values)


def _handler(mailbox: Mailbox, token: str):
    """The class that answers requests for this mailbox."""

    class Handler(BaseHTTPRequestHandler):
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
                self._frame(parse_qs(url.query).get("after", ["0"])[0])
            else:
                self._answer(404, b"", "text/plain")

        def do_POST(self):
            url = urlsplit(self.path)
            length = self.headers.get("Content-Length", "")
            if not (length.isdigit() and int(length) <= LARGEST_BODY):
                self.close_connection = True
                self._answer(413, b"", "text/plain")
                return
            body = self.rfile.read(int(length))
            if not self._allowed(url):
                return
            if url.path != "/events" or self.headers.get("X-Rayfold") != "1":  # a header that other sites cannot send
                self._answer(403, b"", "text/plain")
                return
            try:
                events = json.loads(body)
            except (ValueError, RecursionError):
                events = None
            if not (isinstance(events, list) and all(isinstance(event, dict) for event in events)):
                self._answer(400, b"events are a list of tables", "text/plain")
                return
            mailbox.post(events)
            self._answer(204, b"", "text/plain")

        def _allowed(self, url) -> bool:
            """The token where there is one; else a Host of this machine, so that no other site's name leads here."""
            given = (
                self.headers.get("Authorization", "").removeprefix("Bearer ")
                or parse_qs(url.query).get("token", [""])[0]
            )
            host = (self.headers.get("Host") or "").partition(":")[0]
            allowed = hmac.compare_digest(given.encode(), token.encode()) if token else host in LOOPBACK
            if not allowed:
                self._answer(403, b"this address needs its token", "text/plain")
            return allowed

        def _frame(self, after: str) -> None:
            answer = mailbox.next(int(after) if after.isdigit() and len(after) < 18 else 0)
            if answer is None:
                self._answer(410, b"", "text/plain")
            elif answer[1] is None:
                self._answer(204, b"", "text/plain")
            else:
                self._answer(200, encode_jpeg(answer[1]), "image/jpeg", {"X-Frame": str(answer[0])})

        def _answer(self, status: int, body: bytes, kind: str, extra: dict | None = None) -> None:
            self.send_response(status)
            headers = {"Content-Type": kind, "Content-Length": str(len(body)), "Cache-Control": "no-store"}
            headers |= {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", **(extra or {})}
            for name, value in headers.items():
                self.send_header(name, value)
            try:
                self.end_headers()
                self.wfile.write(body)
            except ConnectionError:
                self.close_connection = True  # the browser went away; the next one is welcome

        def log_message(self, *arguments) -> None:
            """Nothing: stderr is for what the user should read."""

    return Handler
