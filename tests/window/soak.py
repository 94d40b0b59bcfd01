"""A soak test: frames while settings, sizes, views and scenes change; prints the resources in use.

    python tests/window/soak.py [FRAMES] [--device DEVICE]

Prints a JSON line each tenth of the frames: MiB resident, GL textures and device buffers alive, Python objects. The
exit code is 1 if the last line exceeds the third by more than MAX_GROWTH.
"""

import argparse
import gc
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from renderer.paths import ROOT

sys.path.insert(0, str(ROOT))

from renderer.gpu import open_context  # noqa: E402
from renderer.gpu.gl import Texture  # noqa: E402
from renderer.pictures import load  # noqa: E402
from renderer.window.app.backends import OffscreenWindow  # noqa: E402
from renderer.window.controls.toolkit import imgui  # noqa: E402
from renderer.window.state import open_files, panel_actions  # noqa: E402
from renderer.window.state.app_state import AppState  # noqa: E402
from renderer.window.state.session import Session  # noqa: E402
from renderer.window.timeline import actions

SCENES = ("julia", "mirrors", "fern")
SIZES = ((360, 220), (240, 160))
MAX_GROWTH = {"mib": 40, "textures": 16, "buffers": 24, "objects": 5000}  # more than at three tenths


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("frames", type=int, nargs="?", default=100_000)
    parser.add_argument("--device", default="auto")
    args = parser.parse_args()
    gpu = open_context(args.device)
    os.chdir(tempfile.mkdtemp())
    scenes = tuple(load(ROOT / "scenes" / f"{name}.toml") for name in SCENES)
    screen = OffscreenWindow(AppState(Session.of(scenes), gpu), gpu.gl, SIZES[0])
    rows, began = [], time.perf_counter()
    for count in range(args.frames):
        simulate_user(screen, count)
        screen.frame()
        if (count + 1) % max(args.frames // 10, 1) == 0:
            row = {"frames": count + 1, "seconds": round(time.perf_counter() - began, 1), **resources(screen)}
            row["errors"] = [panel.error for panel in screen.app.panels if panel.error]
            rows.append(row)
            print(json.dumps(row), flush=True)
    screen.close()
    grown = {name: rows[-1][name] - rows[min(2, len(rows) - 1)][name] for name in MAX_GROWTH}
    print(json.dumps({"grown": grown}))
    return int(any(grown[name] > most for name, most in MAX_GROWTH.items()) or any(row["errors"] for row in rows))


def simulate_user(screen: OffscreenWindow, count: int) -> None:
    """Simulates a user by a fixed plan: drags, steps of settings, other panels, other sizes, restarts, key frames."""
    app, io = screen.app, imgui.get_io()
    if count % 7 == 0:
        panel_actions.move_view(app, lambda view: view.drag(0.004 if count % 14 else -0.004, 0.0))
    if count % 40 == 0:
        app.panels.select_next(1)
    if count % 50 == 0 and hasattr(app.panel.scene.settings, "color_offset"):
        panel_actions.step_setting(app, "color_offset", 1)
    if count % 60 == 0:
        io.add_mouse_pos_event(count % 300, count % 150)
    if count % 400 == 0:
        screen.resize(SIZES[count // 400 % 2])
    if count % 997 == 0:
        app.panel.restart()
    if count % 1500 == 0:
        actions.add_keyframe(app)
        actions.delete_keyframe_here(app)
        panel_actions.reset_scene(app)
    if count % 5000 == 0:
        open_files.reload(app)


def resources(screen: OffscreenWindow) -> dict:
    """MiB resident, textures alive or waiting to be freed, device buffers, Python's objects."""
    gc.collect()
    things = gc.get_objects()
    textures = sum(isinstance(thing, Texture) for thing in things) + len(screen.gl.ctx.objects)
    buffers = sum(type(thing).__name__ in ("CudaBuffer", "OpenclBuffer") for thing in things)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {"mib": round(pages * 4 / 1024, 1), "textures": textures, "buffers": buffers, "objects": len(things)}


if __name__ == "__main__":
    sys.exit(main())
