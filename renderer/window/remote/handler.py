"""Answers requests of browsers: the page, frames as JPEG, events. Limits who may ask, the size and time of a request.

`rayfold serve` runs a Server. Each browser page is a viewer, with a random name of its choice, and opens a few
connections. Handler answers the requests of one connection; a connection is a stranger until a request has shown the
token.

The token gives the rights of a person at the window, so each request needs it, on loopback too: other users of a
machine reach its loopback addresses. The page takes it from its address and sends it as a header. A cookie would go to
every port of the host, and so to servers of other users.
"""

import hmac
import io
import ipaddress
import socket
import socketserver
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from renderer.formats.images import encode_jpeg
from renderer.records import dataclass
from renderer.system.process import log_internal_error
from renderer.window.remote.events import read_events
from renderer.window.remote.viewers import MAX_VIEWERS, FrameExchange, Viewers, is_name

PAGE = Path(__file__).with_name("page.html")
MAX_BODY_BYTES = 1 << 16  # bytes of a POST request with events
MAX_REQUEST_BYTES = MAX_BODY_BYTES + (1 << 15)  # body and headers
REQUEST_SECONDS = 10.0  # for all of a request to arrive, or for its answer to be taken
IDLE_SECONDS = 60.0  # between two requests of a connection that has shown the token
STRANGER_SECONDS = 2.0  # the same before it has shown the token
MAX_CONNECTIONS = 4 * MAX_VIEWERS  # connections that have shown the token; a page has two or three
MAX_STRANGERS = 32  # connections that have not shown the token yet
BACKLOG = 64  # connections that the system holds until the server accepts them
FULL = f"{MAX_VIEWERS} browsers show windows already; one must leave first"
ENDED = "the server has ended; this page waits for its next start"


@dataclass(frozen=True)
class Access:
    """Decides who may use the server: clients with the token that call the machine by one of its names."""

    token: str
    names: frozenset[str]

    def refusal(self, token: str, host: str | None, origin: str | None) -> str:
        """The reason why a request with these headers and this token is refused; empty if it is allowed.

        A host that is neither an address nor one of the names was resolved by a foreign DNS server (DNS rebinding). An
        origin other than the host is a page of another site.
        """
        if not (host and self._is_ours(host)):
            return "this server goes by the address that it printed"
        if origin is not None and origin.partition("://")[2] != host:
            return "only this server's page may ask"
        if not hmac.compare_digest(token.encode(errors="replace"), self.token.encode()):
            return "this address needs its token"
        return ""

    def _is_ours(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
            return name in self.names or bool(ipaddress.ip_address(name))  # ValueError unless it is an address
        except ValueError:
            return False


class Connections:
    """The open connections. Strangers have not shown the token yet; they never keep out a connection that has.

    A stranger beyond MAX_STRANGERS ends the oldest stranger of the address that has most of them. A connection with the
    token beyond MAX_CONNECTIONS ends the one that asked least recently, of the viewer that has most. So a viewer, who
    shows the token at once, finds room while others fill the machine's ports or take no answers.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._strangers: dict[socket.socket, str] = {}  # socket -> address, oldest first
        self._viewers: dict[socket.socket, str] = {}  # the names of their viewers, the least recent request first

    def add(self, connection: socket.socket, address: str) -> None:
        """Adds a stranger; ends another one if there are too many."""
        with self._lock:
            self._admit(self._strangers, connection, address, MAX_STRANGERS)

    def welcome(self, connection: socket.socket, viewer: str) -> None:
        """Notes that a connection has shown the token; ends another one if there are too many."""
        with self._lock:
            self._strangers.pop(connection, None)
            self._viewers.pop(connection, None)
            self._admit(self._viewers, connection, viewer, MAX_CONNECTIONS)

    @staticmethod
    def _admit(group: dict[socket.socket, str], connection: socket.socket, client: str, most: int) -> None:
        """Adds a connection of a client to a group of at most `most`, as the class describes; the lock is held."""
        if len(group) >= most:
            ((crowd, _),) = Counter(group.values()).most_common(1)
            oldest = next(one for one, origin in group.items() if origin == crowd)
            del group[oldest]
            with suppress(OSError):
                oldest.shutdown(socket.SHUT_RDWR)  # the thread of the oldest then reads the end of the stream
        group[connection] = client

    def remove(self, connection: socket.socket) -> None:
        """Forgets a connection that has ended."""
        with self._lock:
            self._strangers.pop(connection, None)
            self._viewers.pop(connection, None)


class Server(ThreadingHTTPServer):
    """Serves each connection by a thread; internal errors go to a log, not to the terminal."""

    daemon_threads = True
    request_queue_size = BACKLOG

    def __init__(self, host: str, port: int, access: Access, viewers: Viewers):
        self.access, self.viewers, self.connections = access, viewers, Connections()
        if ":" in host:
            self.address_family = socket.AF_INET6
        super().__init__((host, port), Handler)

    def server_bind(self) -> None:
        """Binds without the look-up of the host's full name in HTTPServer, which may take long."""
        socketserver.TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Starts a thread for a connection."""
        self.connections.add(request, client_address[0])
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Runs the thread of a connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.connections.remove(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """Logs an internal error; an OSError is a broken connection."""
        error = sys.exception()
        if error is not None and not isinstance(error, OSError):
            print(f"rayfold: {log_internal_error(error, 'rayfold serve')}", file=sys.stderr)


class BoundedInput(io.RawIOBase):
    """The bytes of a connection; raises TimeoutError if a request is too long or takes too long."""

    def __init__(self, connection: socket.socket):
        self._connection = connection
        self.idle_seconds = STRANGER_SECONDS  # until the first byte of the next request
        self.next_request()

    def next_request(self) -> None:
        """Expects another request, which may begin within idle_seconds and must then end within REQUEST_SECONDS."""
        # Bytes that the request may still have; its end on time.monotonic()'s clock, 0 before its first byte.
        self._room, self._deadline = MAX_REQUEST_BYTES, 0.0

    def readable(self) -> bool:
        """True, as io.RawIOBase asks."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Reads the bytes that have arrived, as io.RawIOBase asks."""
        now = time.monotonic()
        wait = self._deadline - now if self._deadline else self.idle_seconds
        if wait <= 0 or self._room <= 0:
            raise TimeoutError("the request is too long or takes too long")
        self._connection.settimeout(wait)
        count = self._connection.recv_into(buffer, min(len(buffer), self._room))
        self._connection.settimeout(REQUEST_SECONDS)  # for the answer
        self._deadline, self._room = self._deadline or time.monotonic() + REQUEST_SECONDS, self._room - count
        return count


class Handler(BaseHTTPRequestHandler):
    """Answers the requests of one connection."""

    server: Server
    protocol_version = "HTTP/1.1"
    wbufsize, disable_nagle_algorithm = -1, True  # an answer leaves in one write, and at once
    server_version, sys_version = "Rayfold", ""

    def setup(self) -> None:
        """Limits the size and the time of the connection's requests."""
        super().setup()
        self._input = BoundedInput(self.connection)
        self.rfile = io.BufferedReader(self._input)

    def handle_one_request(self) -> None:
        """Reads and answers a request."""
        self._input.next_request()
        super().handle_one_request()

    def do_GET(self) -> None:
        """Answers / with the page, which takes the token in its address, and /frame with a frame."""
        path, query = self._address()
        if not self._allowed(query.get("token", "") if path == "/" else ""):
            return
        if path == "/":
            self._answer(200, PAGE.read_bytes(), "text/html; charset=utf-8")
        elif path == "/frame":
            if (exchange := self._viewer(query)) is not None:
                self._send_frame(exchange, query.get("after", "0"))
        else:
            self._answer(404)

    def do_POST(self) -> None:
        """Takes events; the answer 400 names a malformed event."""
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit() and len(length) < 9 and int(length) <= MAX_BODY_BYTES):
            self.close_connection = True
            self._answer(413)
            return
        body = self.rfile.read(int(length))  # also of a refused request: the next one begins behind it
        if not self._allowed():
            return
        path, query = self._address()
        if path != "/events":
            self._answer(404)
            return
        exchange = self._viewer(query)
        if exchange is None:
            return
        try:
            exchange.post_events(read_events(body))
        except ValueError as error:
            self._answer(400, str(error).encode())
        else:
            self._answer(204)

    def _address(self) -> tuple[str, dict[str, str]]:
        """The path, and the first value of each key of the query."""
        path, _, query = self.path.partition("?")
        try:
            return path, {key: values[0] for key, values in parse_qs(query, max_num_fields=8).items()}
        except ValueError:
            return path, {}

    def _allowed(self, token: str = "") -> bool:
        """Returns true if the request is allowed; answers 403 otherwise."""
        sent_token = self.headers.get("Authorization", "").removeprefix("Bearer ") or token
        refusal = self.server.access.refusal(sent_token, self.headers.get("Host"), self.headers.get("Origin"))
        if refusal:
            self._answer(403, refusal.encode())
            return False
        self.server.connections.welcome(self.connection, self._address()[1].get("viewer", ""))
        self._input.idle_seconds = IDLE_SECONDS
        return True

    def _viewer(self, query: dict[str, str]) -> FrameExchange | None:
        """The exchange of the viewer that sends a request; None after an answer 400 or 503."""
        name = query.get("viewer", "")
        if name and not is_name(name):
            self._answer(400, b"viewer must be a name of up to 40 letters, digits, - and _")
            return None
        exchange = self.server.viewers.find(name)
        if exchange is None:  # MAX_VIEWERS other viewers are there
            self._answer(503, FULL.encode())
        return exchange

    def _send_frame(self, exchange: FrameExchange, after: str) -> None:
        """Answers with a frame other than `after`; 204: none in time, 410: a closed window, 503: the server ends."""
        number = int(after) if after.isascii() and after.isdigit() and len(after) < 18 else 0
        result = exchange.wait_frame(number)
        if result is None and exchange.was_ended:
            self._answer(503, ENDED.encode())
        elif result is None:
            self._answer(410)
        elif result[1] is None:
            self._answer(204)
        else:
            # The frame's number, for `after`; 1 if the window waits for typed text: touch screens then offer a keyboard
            facts = {"X-Frame": str(result[0]), "X-Text": str(int(exchange.wants_text))}
            self._answer(200, encode_jpeg(result[1]), "image/jpeg", facts)

    def _answer(
        self, status: int, body: bytes = b"", content_type: str = "text/plain", extra: dict[str, str] | None = None
    ) -> None:
        """Sends the answer of a request, with headers that forbid caches and other sites' frames."""
        self.send_response(status)
        headers = {"Content-Type": content_type, "Content-Length": str(len(body)), "Cache-Control": "no-store"}
        headers |= {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", **(extra or {})}
        headers |= {"Content-Security-Policy": "frame-ancestors 'none'"}  # no other site shows the window in its page
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def log_message(self, *arguments: object) -> None:
        """Logs nothing: stderr is for messages to the user."""
