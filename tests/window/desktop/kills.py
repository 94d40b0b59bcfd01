"""Kills windows while a monkey edits them: what is restored must hold every edit but those of the last two seconds.

    python -m tests.window.desktop.kills [--kills N] [--seed S] [--within SECONDS] [--jobs J]

Each kill is a function of (seed, index). A child process runs the headless window by the real clock, sends it random
events (tests/window/monkey.py), and notes each state that the window has shown with its time, in a file that no save
of the session goes through. It gets SIGKILL at a random moment. The session that `view --restore` would open must be
one of these states, and the state after it must be younger than --within seconds at the kill. The exit code is 1 if an
older edit is lost or a session cannot be restored.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from renderer.window.state.session import restore
from tests.children import python_path

LIMIT = 240.0  # seconds until a window is up
LONGEST = 6.0  # seconds of editing before the kill
PANELS = ("title", "picture", "settings", "tone", "inspect", "animation", "time", "text")


def edited_window(folder: Path, seed: int) -> None:
    """The child: a window that is edited until it is killed. Its states are lines of states.jsonl."""
    from renderer.gpu.gl import GlContext
    from renderer.pictures import make_recipe
    from renderer.window.state import main_loop
    from renderer.window.state.app_state import AppState
    from tests.window.monkey import RealClock, monkey

    saved, advance = AppState.save, main_loop.advance
    with open(folder / "states.jsonl", "a", encoding="utf-8") as file:
        last = ""

        def note(app) -> None:
            nonlocal last
            panels = []
            for panel in app.panels:
                scene = panel.scene_of_session()
                text = {} if panel.base is None else {"text": panel.base.text}
                panels.append({"time": scene.time, **make_recipe(scene, folder)["scene"], **text})
            state = json.dumps([app.panels.active, app.panels.columns, app.panels.maximized.is_on, panels])
            if state != last:
                last = state
                file.write(json.dumps({"at": time.monotonic(), "state": json.loads(state)}) + "\n")
                file.flush()

        def noted_save(app, clean=False) -> None:
            note(app)
            saved(app, clean)

        def noted_advance(app, *more) -> None:
            note(app)
            advance(app, *more)

        AppState.save, main_loop.advance = noted_save, noted_advance
        with monkey(GlContext.headless(), folder, seed, clock=RealClock()) as user:
            weights = {"edit": 0, "drag": 60, "wheel": 40, "item": 40}  # no file is damaged; most events are edits
            user.weights = [weights.get(kind, weight) for kind, weight in zip(user.kinds, user.weights, strict=True)]
            while True:
                user.event()


def kill(folder: Path, rng: random.Random) -> dict:
    """One window, killed: how old the oldest edit is that it lost."""
    folder.mkdir()
    environment = {**os.environ, "PYTHONPATH": python_path(), "HOME": str(folder)}
    command = [sys.executable, "-m", "tests.window.desktop.kills", "--child", str(folder), str(rng.randrange(1 << 30))]
    with open(folder / "log", "wb") as log:
        child = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=folder)
    states, session = folder / "states.jsonl", folder / "session.json"
    try:
        end = time.monotonic() + LIMIT
        while not session.exists():
            assert child.poll() is None and time.monotonic() < end, (folder / "log").read_text()[-2000:]
            time.sleep(0.02)
        moment = rng.uniform(0.0, LONGEST)
        time.sleep(moment)
        assert child.poll() is None, (folder / "log").read_text()[-2000:]
    finally:
        child.send_signal(signal.SIGKILL)
        killed = time.monotonic()
        child.wait()
    noted = [json.loads(line) for line in states.read_bytes().split(b"\n")[:-1]]
    table = json.loads(session.read_text())
    panels = [{name: panel[name] for name in PANELS if name in panel} for panel in table["panels"]]
    found = [table["active"], table["columns"], table["solo"], panels]
    same = [index for index, row in enumerate(noted) if row["state"] == found]
    assert same, "the session is none of the states that the window has shown"
    missed = noted[same[-1] + 1 :]
    restored = restore(session)
    assert [scene.title for scene in restored.scenes] == [panel["title"] for panel in panels]
    lost = killed - missed[0]["at"] if missed else 0.0
    return {"moment": round(moment, 2), "states": len(noted), "missed": len(missed), "lost_seconds": round(lost, 3)}


def kills(count: int, seed: int, within: float, jobs: int = 1) -> list[dict]:
    """A row for each kill; "lost" says what is wrong with it."""
    with tempfile.TemporaryDirectory(prefix="kills-") as top, ThreadPoolExecutor(jobs) as pool:

        def one(index: int) -> dict:
            try:
                row = kill(Path(top, str(index)), random.Random(f"{seed}/{index}"))
            except (AssertionError, OSError, ValueError, LookupError) as error:
                row = {"lost": str(error)[:1000]}
            if row.get("lost_seconds", 0.0) > within:
                row["lost"] = f"an edit of {row['lost_seconds']} s before the kill"
            print(json.dumps({"seed": seed, "index": index, **row}), flush=True)
            return row

        return list(pool.map(one, range(count)))


def main() -> int:
    """Prints a line a kill and a summary."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--within", type=float, default=2.0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--child", nargs=2, metavar=("FOLDER", "SEED"), help="the window itself")
    args = parser.parse_args()
    if args.child:
        edited_window(Path(args.child[0]), int(args.child[1]))
    rows = kills(args.kills, args.seed, args.within, args.jobs)
    failures = sum("lost" in row for row in rows)
    oldest = max((row.get("lost_seconds", 0.0) for row in rows), default=0.0)
    states = sum(row.get("states", 0) for row in rows)
    print(json.dumps({"kills": len(rows), "failures": failures, "oldest_lost_seconds": oldest, "states": states}))
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
