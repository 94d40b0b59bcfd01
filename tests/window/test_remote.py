"""The window in a browser: over HTTP, and in a headless Chromium; who may use it, and how much of it."""

import contextlib
import json
import math
import os
import shutil
import signal
import socket
import stat
import struct
import subprocess
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from renderer.errors import UnavailableError
from renderer.formats.images import read_pixels
from renderer.pictures import load
from renderer.window.remote import handler
from renderer.window.remote.events import read_events
from renderer.window.remote.server import TOKEN, RemoteServer, inject, kept_token, own_address
from renderer.window.state.session import restore
from tests.window.helpers import wait_for


def request(address: str, path: str, body=None, headers=None):
    """Status, headers and body of a response to a request with the token of the address."""
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    base, _, token = address.partition("?token=")
    held = {"Authorization": f"Bearer {token}"} if token else {}
    asked = urllib.request.Request(base + path, data, headers=held | (headers or {}))
    try:
        with urllib.request.urlopen(asked, timeout=20) as answer:
            return answer.status, dict(answer.headers), answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, dict(error.headers), error.read()


def decode_jpeg(body: bytes, folder: Path) -> np.ndarray:
    (folder / "frame.jpg").write_bytes(body)
    return read_pixels(folder / "frame.jpg")[..., :3].astype(int)


def key_events(code: str, **modifiers):
    return [{"kind": "key", "code": code, "down": down, **modifiers} for down in (True, False)]


def test_frames_and_events_over_http(served, tmp_path):
    process, address = served
    assert address.startswith("http://127.0.0.1:")
    status, headers, page = request(address, "")
    assert status == 200 and b"<canvas" in page
    status, headers, body = request(address, "frame?after=0")
    assert (
        status == 200 and headers["Content-Type"] == "image/jpeg" and decode_jpeg(body, tmp_path).shape == (400, 500, 3)
    )
    first = headers["X-Frame"]
    assert request(address, "events", key_events("KeyH"))[0] == 204  # hides the controls
    status, headers, body = request(address, f"frame?after={first}")
    assert status == 200 and headers["X-Frame"] != first
    drag = [{"kind": "move", "x": 200, "y": 130}, {"kind": "button", "button": 0, "down": True}]
    drag += [{"kind": "move", "x": 280, "y": 130}, {"kind": "button", "button": 0, "down": False}]
    request(address, "events", drag)
    request(address, "events", key_events("F12"))
    wait_for(lambda: (tmp_path / "first-001.png").exists(), process)
    assert load(tmp_path / "first-001.png").settings.view.center[0] < -0.6
    request(address, "events", [{"kind": "resize", "width": 320, "height": 10**5}])
    wait_for(lambda: decode_jpeg(request(address, "frame?after=0")[2], tmp_path).shape == (4096, 320, 3), process)
    request(address, "events", key_events("KeyQ", ctrl=True))
    request(address, "frame?after=0")
    time.sleep(0.5)
    request(address, "events", key_events("KeyD"))  # discards the changes
    assert process.wait(20) == 0 and "Traceback" not in process.stderr.read()


def test_malformed_requests_are_refused(served):
    process, address = served
    assert request(address, "nothing")[0] == 404
    assert request(address, "events", b"{")[0] == 400 and request(address, "events", [1])[0] == 400
    assert request(address, "events", b"[" * 60000)[0] == 400
    with pytest.raises((urllib.error.URLError, ConnectionError)):
        status = request(address, "events", b"x" * 200_000)[0]
        assert status == 413
        raise ConnectionError
    status, _, text = request(address, "events", [{"kind": "focus", "focused": True}, {"kind": "move", "x": 1}])
    assert (status, text) == (400, b"event 1: y of move is missing or not allowed")
    assert request(address, "frame?after=zero")[0] == 200 and process.poll() is None
    assert request(address, "frame?after=%C2%B2")[0] == 200, "a superscript is a digit for str.isdigit()"
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130 and process.stderr.read() == "rayfold: interrupted\n"


GOOD = [
    {"kind": "move", "x": 10, "y": -20.5}, {"kind": "button", "button": 2, "down": True}, {"kind": "wheel", "y": -1},
    {"kind": "key", "code": "KeyA", "down": True, "ctrl": True}, {"kind": "text", "text": "aß漢"},
    {"kind": "key", "code": "LaunchApp1", "down": False}, {"kind": "focus", "focused": False},
    {"kind": "resize", "width": 800, "height": 600}, {"kind": "resize", "width": 800, "height": 600, "ratio": 2.5},
]  # fmt: skip
BAD = [
    {}, {"kind": 3}, {"kind": ["move"]}, {"kind": "none"}, {"kind": "move", "x": "1", "y": None},
    {"kind": "move", "x": math.nan, "y": 1}, {"kind": "move", "x": 10**400, "y": 1},
    {"kind": "move", "x": True, "y": 1},
    {"kind": "move", "x": 1}, {"kind": "move", "x": 1, "y": 1, "z": 1}, {"kind": "wheel", "y": math.inf},
    {"kind": "button", "button": 1.0, "down": True}, {"kind": "button", "button": True, "down": True},
    {"kind": "button", "button": 3, "down": True}, {"kind": "button", "button": 0, "down": 1},
    {"kind": "key", "code": ["KeyA"], "down": True}, {"kind": "key", "code": "K" * 41, "down": True},
    {"kind": "key", "code": "KeyA", "down": True, "ctrl": 1}, {"kind": "text", "text": 5},
    {"kind": "text", "text": "\ud83d"}, {"kind": "text", "text": "a\0"}, {"kind": "text", "text": "a" * 17},
    {"kind": "focus", "focused": "yes"}, {"kind": "resize", "width": -1e7, "height": 1}, {"kind": "resize", "width": 5},
    {"kind": "resize", "width": 5, "height": 5, "ratio": "2"}, {"kind": "move", "x": 1, "y": 1, "ratio": 1},
]  # fmt: skip


def test_every_event_is_checked_before_the_window_sees_it(screen):
    assert read_events(json.dumps(GOOD).encode()) == GOOD
    for event in GOOD:
        inject(screen, event)
    for event in BAD:
        with pytest.raises(ValueError, match="^event 1: "):
            read_events(json.dumps([GOOD[0], event]).encode())
    for body in (b"", b"{}", b"[1", b"3", b"\xff", b"[" * 60000):
        with pytest.raises(ValueError, match="events must be a JSON list"):
            read_events(body)


@pytest.fixture(autouse=True)
def state_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def remote():
    server = RemoteServer("127.0.0.1", 0)
    yield server
    server.close()


def test_each_request_requires_the_token_on_loopback_too(remote):
    base, token = remote.address.split("?token=")
    assert base.startswith("http://127.0.0.1:") and len(token) >= 20
    events = lambda **headers: request(base, "events", [], headers)[0]  # noqa: E731
    assert request(base, "")[0] == 403 and request(base, "frame")[0] == 403 and events() == 403
    assert request(base, "?token=wrong")[0] == 403 and request(base, f"?token={token[:-1]}")[0] == 403
    assert request(base, "?token=%C3%A9")[0] == 403 and events(Authorization="Bearer \xe9") == 403
    assert request(base, f"frame?token={token}")[0] == 403, "other sites can make links"
    assert request(base, f"?token={token}")[0] == 200
    assert events(Authorization=f"Bearer {token}") == 204
    assert RemoteServer.__init__.__defaults__ is None, "there is no server without a token"


def test_other_sites_cannot_use_the_server_even_with_the_token(remote):
    status = lambda **headers: request(remote.address, "events", [], headers)[0]  # noqa: E731
    port = remote.address.split(":")[2].split("/")[0]
    for host in ("127.0.0.1", "localhost", "[::1]", "192.0.2.7"):
        assert status(Host=f"{host}:{port}") == 204, host
    for host in ("evil.example", f"evil.example:{port}", "", "[bad", "localhost.evil.example", f"evil@x:{port}"):
        assert status(Host=host) == 403, "DNS rebinding: another site's name for this machine"
    assert status(Origin=f"http://127.0.0.1:{port}") == 204
    for origin in ("http://evil.example", "null", f"http://127.0.0.1:{int(port) - 1}", "http://127.0.0.1"):
        assert status(Origin=origin) == 403, origin


def test_a_server_of_all_addresses_prints_a_name_that_it_answers_to():
    remote = RemoteServer("0.0.0.0", 0)
    try:
        host = remote.address.split("/")[2]
        name = host.rpartition(":")[0]
        assert name not in ("0.0.0.0", "::") and name in (own_address("0.0.0.0"), socket.gethostname())
        socket.getaddrinfo(name, None)  # it can be resolved, so a browser can open it
        local = remote.address.replace(name, "127.0.0.1", 1)
        assert request(local, "events", [], {"Host": host})[0] == 204
    finally:
        remote.close()


def connect(remote) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(remote.address.split(":")[2].split("/")[0])), timeout=20)


def closed_after(connection: socket.socket) -> float:
    """Seconds until the server closes a connection."""
    start = time.monotonic()
    with contextlib.suppress(ConnectionError):
        while connection.recv(1 << 16):
            pass
    return time.monotonic() - start


@pytest.mark.parametrize("first", [b"G", b"POST /events HTTP/1.1\r\nContent-Length: 9\r\n\r\n["])
def test_a_request_that_drips_is_ended(remote, monkeypatch, first):
    """Each byte arrives soon after the last, so that a limit between bytes would never end it."""
    monkeypatch.setattr(handler, "REQUEST_SECONDS", 1.0)
    start = time.monotonic()
    with connect(remote) as connection, contextlib.suppress(ConnectionError):
        connection.sendall(first)
        while time.monotonic() - start < 15:
            connection.sendall(b"x")
            time.sleep(0.1)
    assert time.monotonic() - start < 5


def test_headers_without_end_are_ended(remote):
    with connect(remote) as connection, contextlib.suppress(ConnectionError):
        for number in range(50_000):
            connection.sendall(b"GET / HTTP/1.1\r\n" if number == 0 else b"a: " + b"b" * 1000 + b"\r\n")
        raise AssertionError("50 megabytes of headers were read")


def wait_until(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_idle_strangers_never_keep_the_owner_out(remote, monkeypatch):
    """More idle connections than the machine's queue holds, from the owner's own address."""
    monkeypatch.setattr(handler, "STRANGER_SECONDS", 60.0)
    before = threading.active_count()
    flood = []
    try:
        for _ in range(140):
            flood.append(connect(remote))
            if len(flood) % 20 == 0:
                assert request(remote.address, "events", [])[0] == 204
        wait_until(lambda: threading.active_count() - before <= handler.MAX_STRANGERS + 1)
        flood[0].settimeout(5)
        assert flood[0].recv(1) == b"", "the oldest stranger has made room"
    finally:
        for connection in flood:
            connection.close()


def test_strangers_of_one_address_make_room_for_others():
    connections, ends = handler.Connections(), [socket.socketpair() for _ in range(handler.MAX_STRANGERS + 1)]
    near, *far = [pair[0] for pair in ends]
    connections.add(near, "192.0.2.1")
    for one in far:
        connections.add(one, "192.0.2.2")
    for near_end, far_end in ends:
        near_end.setblocking(False)
        far_end.setblocking(False)
    with pytest.raises(BlockingIOError):
        near.recv(1)
    assert far[0].recv(1) == b"" and ends[1][1].recv(1) == b""
    for pair in ends:
        for end in pair:
            end.close()


def test_connections_with_the_token_are_bounded(remote, monkeypatch):
    monkeypatch.setattr(handler, "MAX_CONNECTIONS", 2)
    base, token = remote.address.split("?token=")
    held = [connect(remote) for _ in range(3)]
    for one in held:
        one.sendall(f"GET /?token={token} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert one.recv(12) == b"HTTP/1.1 200"
    closed_after(held[0])  # the one that asked least recently
    for one in held:
        one.close()


def test_frames_that_nobody_takes_never_keep_the_owner_out(remote):
    """Thousands of requests for frames, with the token, gave the owner 503; each held a thread for ten seconds."""
    token, before, flood = remote.address.split("?token=")[1], threading.active_count(), []
    ask = f"GET /frame?after=0&viewer=crowd HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
    try:
        for count in range(3 * handler.MAX_CONNECTIONS):
            flood.append(connect(remote))
            flood[-1].sendall(ask.encode())
            if count % 40 == 0:
                assert request(remote.address, "events?viewer=owner", [])[0] == 204
        wait_until(lambda: threading.active_count() - before <= handler.MAX_CONNECTIONS + handler.MAX_STRANGERS)
    finally:
        for connection in flood:
            connection.close()


def test_a_stranger_must_ask_soon(remote, monkeypatch):
    monkeypatch.setattr(handler, "STRANGER_SECONDS", 0.3)
    monkeypatch.setattr(handler, "IDLE_SECONDS", 60.0)
    base, token = remote.address.split("?token=")
    with connect(remote) as silent:
        assert silent.recv(1) == b""
    with connect(remote) as wrong:
        wrong.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert wrong.recv(12) == b"HTTP/1.1 403"
        closed_after(wrong)
    with connect(remote) as viewer:
        viewer.sendall(f"GET /?token={token} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        viewer.settimeout(1.5)
        with pytest.raises(TimeoutError):
            closed_after(viewer)


def test_a_restart_keeps_its_token_in_a_private_file(tmp_path):
    path = tmp_path / "state" / "serve-token"
    token = kept_token(path)
    assert TOKEN.fullmatch(token) and kept_token(path) == token
    assert os.name == "nt" or stat.S_IMODE(path.stat().st_mode) == 0o600
    if os.name != "nt":
        path.chmod(0o640)  # somebody may have read it
        token, old = kept_token(path), token
        assert token != old and stat.S_IMODE(path.stat().st_mode) == 0o600
        target = tmp_path / "target"
        target.write_text("A" * 22)
        target.chmod(0o600)
        path.unlink()
        path.symlink_to(target)
        assert kept_token(path) != "A" * 22 and not path.is_symlink() and target.read_text() == "A" * 22
    for text in ("", "A" * 21, "A" * 23, "A" * 21 + "\n", "Ä" * 22, "A" * 100_000):
        path.write_text(text)
        path.chmod(0o600)
        token = kept_token(path)
        assert TOKEN.fullmatch(token) and path.read_text() == token
    (tmp_path / "file").touch()
    assert TOKEN.fullmatch(kept_token(tmp_path / "file" / "serve-token")), "no folder: a token of this server alone"


def test_a_page_waits_for_the_next_server_but_not_for_a_window_that_was_closed(remote):
    answers = []
    threads = [
        threading.Thread(target=lambda name=name: answers.append((name, request(remote.address, name)[0])))
        for name in ("frame?viewer=first", "frame?viewer=second")
    ]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(remote.viewers.all()) == 2 and all(one.has_viewer() for one in remote.viewers.all()))
    quit_one = remote.viewers.find("second")
    quit_one.close()
    wait_until(lambda: answers == [("frame?viewer=second", 410)])
    remote.viewers.close()
    for thread in threads:
        thread.join(20)
    assert answers[1:] == [("frame?viewer=first", 503)]


def test_an_error_of_ours_in_a_request_is_one_line_and_a_log(remote, monkeypatch, capfd, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(handler, "read_events", lambda body: {}["no such key"])
    with pytest.raises((urllib.error.URLError, ConnectionError)):
        request(remote.address, "events", [])
    with connect(remote) as connection:  # a browser that leaves in the middle is no error
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.sendall(b"POST /events HTTP/1.1\r\nContent-Length: 9\r\n\r\n[")
    time.sleep(0.3)
    _, text = capfd.readouterr()
    assert text.startswith("rayfold: internal error in rayfold serve: KeyError") and text.count("\n") == 1
    monkeypatch.undo()
    assert request(remote.address, "events", [])[0] == 204


def test_sessions_of_serve_are_kept(served, tmp_path):
    """Its session is saved while it runs, so that a killed one can be restored, and at its end."""
    process, address = served
    kept = tmp_path / "state" / "rayfold" / "session.json"
    request(address, "frame?after=0")
    wait_for(kept.exists, process)
    assert not restore(kept).clean and restore(kept).scenes[0].title == "first"
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 130 and restore(kept).clean


def test_a_port_in_use_raises(scene_files):
    with socket.socket() as take_screenshot:
        take_screenshot.bind(("127.0.0.1", 0))
        take_screenshot.listen()
        with pytest.raises(UnavailableError, match="cannot listen on"):
            RemoteServer("127.0.0.1", take_screenshot.getsockname()[1])


@pytest.fixture
def browser(tmp_path):
    """The port of a headless Chromium that takes commands."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("needs Chromium: apt install chromium")
    pytest.importorskip("tornado", reason="commands to Chromium go over tornado's web sockets")
    profile = tmp_path / "profile"
    command = [program, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"]
    command += ["--remote-debugging-port=0", "--window-size=640,480", "about:blank"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    chosen = profile / "DevToolsActivePort"
    try:
        wait_for(lambda: chosen.exists() and chosen.read_text().count("\n"), process)
        yield int(chosen.read_text().splitlines()[0])
    finally:
        process.kill()
        process.wait()


def run_commands(port: int, script):
    """Runs `await script(command)` with command(method, **parameters) on the page of a Chromium."""
    from tornado.ioloop import IOLoop
    from tornado.websocket import websocket_connect

    async def run():
        pages = json.loads(request(f"http://127.0.0.1:{port}/", "json/list")[2])
        page = next(p for p in pages if p["type"] == "page")
        connection = await websocket_connect(page["webSocketDebuggerUrl"])
        count = iter(range(1, 10**6))

        async def command(method: str, **parameters):
            number = next(count)
            connection.write_message(json.dumps({"id": number, "method": method, "params": parameters}))
            while (answer := json.loads(await connection.read_message())).get("id") != number:
                pass
            return answer["result"]

        return await script(command)

    return IOLoop(make_current=False).run_sync(run, timeout=60)


def test_frames_and_events_in_a_real_browser(served, browser, tmp_path):
    process, address = served

    async def value(command, expression: str):
        return (await command("Runtime.evaluate", expression=expression))["result"].get("value")

    async def script(command):
        await command("Page.navigate", url=address)
        canvas = "document.querySelector('canvas')"
        end = time.perf_counter() + 30
        while int(await value(command, f"{canvas} && {canvas}.dataset.frames || 0") or 0) < 2:
            assert time.perf_counter() < end, "no frame arrives"
        width, height = await value(command, "innerWidth"), await value(command, "innerHeight")
        while (await value(command, f"{canvas}.width"), await value(command, f"{canvas}.height")) != (width, height):
            assert time.perf_counter() < end, "the window does not take the page's size"
        for kind, x in (("mousePressed", 60), ("mouseMoved", 90), ("mouseMoved", 130), ("mouseReleased", 130)):
            await command("Input.dispatchMouseEvent", type=kind, x=x, y=200, button="left", buttons=1, clickCount=1)
        for kind in ("rawKeyDown", "keyUp"):
            await command("Input.dispatchKeyEvent", type=kind, code="F12", key="F12")
        while not (tmp_path / "first-001.png").exists():
            assert time.perf_counter() < end, "the keys do not arrive"
            await command("Runtime.evaluate", expression="0")

    run_commands(browser, script)
    assert load(tmp_path / "first-001.png").settings.view.center[0] < -0.6
