"""The window in a browser: over HTTP, and in a headless Chromium."""

import json
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from renderer.errors import UnavailableError
from renderer.formats.images import read_pixels
from renderer.pictures import load
from renderer.window.remote.server import RemoteServer
from tests.window.helpers import wait_for


def request(address: str, path: str, body=None, headers=None):
    """Status, headers and body of a response."""
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    asked = urllib.request.Request(address + path, data, headers={"X-Rayfold": "1", **(headers or {})})
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
    drag = [{"kind": "move", "x": 200, "y": 200}, {"kind": "button", "button": 0, "down": True}]
    drag += [{"kind": "move", "x": 280, "y": 200}, {"kind": "button", "button": 0, "down": False}]
    request(address, "events", drag)
    request(address, "events", key_events("F12"))
    wait_for(lambda: (tmp_path / "first-001.png").exists(), process)
    assert load(tmp_path / "first-001.png").settings.view.center[0] < -0.6
    request(address, "events", [{"kind": "resize", "width": 320, "height": 10**5}])
    wait_for(lambda: decode_jpeg(request(address, "frame?after=0")[2], tmp_path).shape == (4096, 320, 3), process)
    request(address, "events", key_events("KeyQ", ctrl=True))
    assert process.wait(20) == 0 and "Traceback" not in process.stderr.read()


def test_malformed_requests_are_refused(served):
    process, address = served
    assert request(address, "nothing")[0] == 404
    assert request(address, "events", b"{")[0] == 400 and request(address, "events", [1])[0] == 400
    assert request(address, "events", b"[" * 60000)[0] == 400
    assert request(address, "events", [], {"X-Rayfold": "0"})[0] == 403, "another site's form"
    assert request(address, "frame", None, {"Host": "evil.example"})[0] == 403, "another site's name for this machine"
    with pytest.raises((urllib.error.URLError, ConnectionError)):
        status = request(address, "events", b"x" * 200_000)[0]
        assert status == 413
        raise ConnectionError
    nonsense = [{}, {"kind": 3}, {"kind": "move", "x": "1", "y": None}, {"kind": "button", "button": 99}]
    nonsense += [{"kind": "key", "code": "KeyÖ"}, {"kind": "wheel", "y": 1e300}, {"kind": "text", "text": 5}]
    nonsense += [{"kind": "resize", "width": -5, "height": True}, {"kind": "move", "x": float("nan"), "y": 1}]
    assert request(address, "events", nonsense)[0] == 204
    assert request(address, "frame?after=zero")[0] == 200 and process.poll() is None
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130


def test_other_hosts_require_the_token(screen):
    remote = RemoteServer("127.0.0.2", 0)  # not in LOOPBACK
    try:
        address, token = remote.address.split("?token=")
        assert len(token) >= 16
        assert request(address, "")[0] == 403 and request(address, "events", [])[0] == 403
        assert request(address, "?token=wrong")[0] == 403
        assert request(address, f"?token={token}")[0] == 200
        assert request(address, "events", [], {"Authorization": f"Bearer {token}"})[0] == 204
    finally:
        remote.close()


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
