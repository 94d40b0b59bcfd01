"""Several browsers at a time: whose window is whose, how many, and that a slow one stalls no other."""

import base64
import socket
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from renderer.formats.images import read_pixels
from renderer.pictures import load
from renderer.system.process import StopFlag
from renderer.window.remote import viewers as viewers_module
from renderer.window.remote.server import RemoteServer
from renderer.window.remote.viewers import MAX_VIEWERS, Viewers, is_name
from tests.window.helpers import wait_for
from tests.window.test_remote import browser, decode_jpeg, key_events, request, run_commands  # noqa: F401  (a fixture)


def test_each_browser_has_its_own_size_ratio_and_view(served, tmp_path):
    process, address = served

    def frame(viewer: str):
        return decode_jpeg(request(address, f"frame?viewer={viewer}&after=0")[2], tmp_path)

    wide, tall = (
        {"kind": "resize", "width": w, "height": h, "ratio": r} for w, h, r in ((600, 300, 1.0), (200, 360, 1.5))
    )
    request(address, "events?viewer=desk", [wide, *key_events("KeyH")])
    request(address, "events?viewer=phone", [tall])
    wait_for(lambda: frame("desk").shape == (300, 600, 3), process)
    wait_for(lambda: frame("phone").shape == (540, 300, 3), process)
    assert frame("desk").shape == (300, 600, 3), "the second browser does not resize the first"

    picture = (slice(60, 240), slice(100, 300))
    wait_for(lambda: frame("desk")[picture].std() > 10, process)
    wait_for(lambda: frame("phone")[150:400].std() > 10, process)
    wait_for(lambda: is_steady(lambda: frame("phone")), process)  # the whole picture, not its first strips
    before = [frame(name) for name in ("desk", "phone")]
    drag = [{"kind": "move", "x": 200, "y": 150}, {"kind": "button", "button": 0, "down": True}]
    drag += [{"kind": "move", "x": 300, "y": 150}, {"kind": "button", "button": 0, "down": False}]
    request(address, "events?viewer=desk", drag)
    wait_for(lambda: np.abs(frame("desk") - before[0])[picture].mean() > 10, process)
    assert np.abs(frame("phone")[150:400] - before[1][150:400]).mean() < 4, "each viewer has a separate view"
    assert request(address, "frame?viewer=a%20b")[0] == 400
    request(address, "events?viewer=phone", key_events("KeyQ", ctrl=True))
    wait_for(lambda: request(address, "frame?viewer=phone&after=0")[0] == 410, process)
    assert frame("desk").shape == (300, 600, 3) and process.poll() is None, "who quits closes only that window"


def is_steady(frame) -> bool:
    """True if two frames half a second apart are nearly equal."""
    first = frame()
    time.sleep(0.5)
    return np.abs(frame() - first).mean() < 1


async def value(command, expression: str):
    """The value of an expression of the page."""
    return (await command("Runtime.evaluate", expression=expression))["result"].get("value")


async def until(command, expression: str, seconds: float = 40.0) -> None:
    end = time.perf_counter() + seconds
    while not await value(command, expression):
        assert time.perf_counter() < end, expression


async def screenshot(command, path) -> np.ndarray:
    """The page as the browser shows it, (height, width, 3) uint8."""
    path.write_bytes(base64.b64decode((await command("Page.captureScreenshot"))["data"]))
    return read_pixels(path)[..., :3]


@pytest.mark.slow
def test_a_telephone_in_a_real_browser(served, browser, tmp_path):  # noqa: F811
    """One finger drags, two zoom, the toolbar's buttons take taps; the window is narrow and sharp."""
    process, address = served

    async def touch(command, kind: str, *points) -> None:
        where = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(points)]
        await command("Input.dispatchTouchEvent", type=kind, touchPoints=where)

    async def script(command):
        metrics = dict(width=390, height=844, deviceScaleFactor=2, mobile=True)
        await command("Emulation.setDeviceMetricsOverride", **metrics)
        await command("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=2)
        await command("Page.navigate", url=address)
        size = f"{round(325 * 2.4)}x{round(703 * 2.4)}"  # 390 x 844 CSS pixels are 325 x 703 units of 2.4 pixels
        await until(command, f"document.querySelector('canvas') && `${{canvas.width}}x${{canvas.height}}` == '{size}'")
        name = await value(command, "viewer")
        shown = await screenshot(command, tmp_path / "phone.png")
        assert shown.shape[:2] in ((844, 390), (1688, 780)) and shown.std() > 20
        frame = int(await value(command, "canvas.dataset.frames"))
        await touch(command, "touchStart", (120, 300))
        for x in (150, 180, 220):
            await touch(command, "touchMove", (x, 300))
        await touch(command, "touchEnd")
        await touch(command, "touchStart", (180, 300), (220, 300))
        for step in (20, 40, 60):
            await touch(command, "touchMove", (180 - step, 300), (220 + step, 300))
        await touch(command, "touchEnd")
        await until(command, f"canvas.dataset.frames > {frame + 2} && !sending && !events.length")
        request(address, f"events?viewer={name}", key_events("F12"))
        end = time.perf_counter() + 40
        while not (tmp_path / "first-001.png").exists():
            assert time.perf_counter() < end, "no screenshot"
            await command("Runtime.evaluate", expression="0")
        await touch(command, "touchStart", (230, 23))  # the button "Controls"
        await touch(command, "touchEnd")
        before, end = shown[shown.shape[0] * 6 // 10 :], time.perf_counter() + 20
        while (
            np.abs(before.astype(int) - (await screenshot(command, tmp_path / "sheet.png"))[-len(before) :]).mean() < 20
        ):
            assert time.perf_counter() < end, "the controls do not open"

    run_commands(browser, script)
    view = load(tmp_path / "first-001.png").settings.view
    assert view.center[0] < -0.6 and view.height < 1.2, "dragged and zoomed"
    assert process.poll() is None


def test_who_gets_which_window(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(viewers_module, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    viewers = Viewers()
    first = viewers.find("a")
    assert first is viewers.first and viewers.find("a") is first
    second = viewers.find("b")
    assert second is not first and viewers.wake.is_set() and viewers.all() == [first, second]
    clock[0] += viewers_module.LEFT_SECONDS + 1
    viewers.find("b").touch()
    assert viewers.find("c") is first, "a has left: the first window goes on with c"
    assert viewers.find("a") not in (first, second), "a is back, and c has its window"
    viewers.find("b").touch()
    gone = viewers.find("a")
    clock[0] += viewers_module.FORGET_SECONDS
    viewers.forget_gone()
    assert viewers.all() == [first, second, gone] and not gone.closed, "a viewer may be away for so long"
    clock[0] += 1
    second.touch()
    viewers.forget_gone()
    assert viewers.all() == [first, second], "the first stays although nobody looks"
    assert gone.closed and not gone.was_ended and not first.closed and not second.closed
    for number in range(MAX_VIEWERS):
        first.touch()
        viewers.find(f"n{number}")
    assert len(viewers.all()) == MAX_VIEWERS and viewers.find("one more") is None
    viewers.close()
    assert all(exchange.wait_frame(0) is None for exchange in viewers.all())


def test_names_of_viewers():
    assert is_name("0f3a-_Z") and not any(map(is_name, ("", "a b", "a" * 41, "../a", "é", "a\n")))


class FlickeringWindow:
    """A window without a GL: each frame has other pixels, and costs some time."""

    def __init__(self):
        self.frames, self.size = 0, (64, 48)
        self.gl = SimpleNamespace(software=False)
        self.app = SimpleNamespace(
            loop=SimpleNamespace(quit_requested=False),
            wake=None,
            file_watcher=SimpleNamespace(listen=lambda wake: None),
        )
        self.ui = SimpleNamespace(idle=SimpleNamespace(wait=lambda: 0.0, needs_frame=lambda had_input: True))

    def make_current(self) -> None:
        pass

    def frame(self) -> None:
        self.frames += 1
        time.sleep(0.0005)

    def pixels(self) -> np.ndarray:
        return np.random.default_rng(self.frames).integers(0, 255, (600, 800, 3), "u1")

    def close(self) -> None:
        pass


def test_a_browser_that_takes_nothing_stalls_no_other(monkeypatch):
    """One asks for frames of megabytes and never reads an answer; three others go on."""
    monkeypatch.setattr("renderer.window.remote.server.imgui.get_io", lambda: SimpleNamespace(want_text_input=False))
    remote, first = RemoteServer("127.0.0.1", 0), FlickeringWindow()
    thread = threading.Thread(target=remote.run, args=(first, FlickeringWindow, StopFlag()))
    thread.start()
    try:
        port, token = int(remote.address.split(":")[2].split("/")[0]), remote.address.split("token=")[1]
        stuck = socket.create_connection(("127.0.0.1", port))
        stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        ask = f"GET /frame?viewer=stuck&after=0 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
        stuck.sendall(ask.encode() * 20)
        taken = {}

        def watch(name: str) -> None:
            number, taken[name] = "0", []
            for _ in range(6):
                began = time.perf_counter()
                status, headers, _ = request(remote.address, f"frame?viewer={name}&after={number}")
                assert status == 200 and headers["X-Frame"] != number
                number = headers["X-Frame"]
                taken[name].append(time.perf_counter() - began)

        watchers = [threading.Thread(target=watch, args=(name,)) for name in ("a", "b", "c")]
        for watcher in watchers:
            watcher.start()
        for watcher in watchers:
            watcher.join(60)
        assert all(len(seconds) == 6 for seconds in taken.values()), taken
        stuck.close()
    finally:
        first.app.loop.quit_requested = True
        remote.viewers.wake.set()
        thread.join(20)
        remote.close()
    assert not thread.is_alive()


def test_a_page_beyond_the_last_is_reported_so(monkeypatch):
    monkeypatch.setattr(viewers_module, "MAX_VIEWERS", 1)
    remote = RemoteServer("127.0.0.1", 0)
    try:
        assert request(remote.address, "events?viewer=a", [])[0] == 204
        status, _, text = request(remote.address, "events?viewer=b", [])
        assert status == 503 and b"browsers show windows already" in text
    finally:
        remote.close()


@pytest.mark.parametrize("ratio, size", [(1.0, (100, 80)), (2.5, (250, 200))])
def test_a_window_has_pixels_and_units(screen, ratio, size):
    screen.resize((100, 80), ratio)
    screen.frame()
    assert screen.pixels().shape == (size[1], size[0], 3)
    panel, rect = screen.app.panels[0], screen.app.panels.shown[0].image_rect
    assert rect[0] + rect[2] <= 100 and panel.drawn.size <= (round(rect[2] * ratio), round(rect[3] * ratio))
