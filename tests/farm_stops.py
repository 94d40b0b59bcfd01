"""Stops and kills members of farms at random moments: a film must go on or end in time, and nothing may be lost.

    python -m tests.farm_stops [--runs N] [--seed S] [--output F.jsonl]

Each run is a function of (seed, index): a scheduler with two workers draws a film, and after some frames the scheduler,
a worker or both get SIGSTOP, SIGSTOP and SIGCONT some seconds later, or SIGKILL. A stopped process keeps its
connections. Prints for each run the longest time without a new frame from then on, the exit code, and the frames that
were kept; then one process draws the rest, and all files must have the bytes of a film of one process.
"""

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

from renderer.paths import ROOT
from tests.export.export_helpers import SCENE, cluster, export

FRAMES = 60
FILM = ["--frames", f"1-{FRAMES}", "--samples", "60", "--size", "160x100"]
KINDS = [(member, action) for action in ("stop", "pause", "kill") for member in ("scheduler", "worker", "workers")]
LIMIT_SECONDS = 60.0  # without a new frame or the end


def run(folder: Path, reference: list[bytes], rng: random.Random, index: int) -> dict:
    """One film, one fault; returns what was measured. AssertionError where a frame is lost or the film hangs."""
    member, action = KINDS[index % len(KINDS)]
    after, pause = rng.randint(1, FRAMES // 2), rng.uniform(1.0, 60.0)
    row = {"member": member, "action": action, "after": after} | ({"pause": round(pause)} if action == "pause" else {})
    scene = folder / "scene.toml"
    scene.write_text(SCENE)
    words = ["export", scene, "-o", folder / "f_##.png", *FILM]
    with cluster(folder, workers=2) as (address, scheduler, workers):
        command = [sys.executable, str(ROOT / "main.py"), *map(str, words), "--farm", address, "--insecure"]
        film = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        hit = {"scheduler": [scheduler], "worker": workers[:1], "workers": workers}[member]
        try:
            row |= watch(film, folder, hit, row)
        finally:
            film.kill()
            film.wait()
    compare(folder, scene, reference)
    return row


def watch(film: subprocess.Popen, folder: Path, hit: list[subprocess.Popen], row: dict) -> dict:
    while len(frames(folder)) < row["after"]:
        assert film.poll() is None, film.communicate()
        time.sleep(0.01)
    send(hit, signal.SIGKILL if row["action"] == "kill" else signal.SIGSTOP)
    timer = threading.Timer(row.get("pause", 0.0), send, (hit, signal.SIGCONT))
    if "pause" in row:
        timer.start()
    at_fault = count = len(frames(folder))
    began = last = time.monotonic()
    longest = 0.0
    while film.poll() is None:
        now = len(frames(folder))
        longest = max(longest, time.monotonic() - last)
        assert longest < LIMIT_SECONDS, f"{row}: no frame for {longest:.0f} s"
        count, last = (now, time.monotonic()) if now > count else (count, last)
        time.sleep(0.02)
    timer.cancel()
    errors = film.communicate()[1]
    assert film.returncode in (0, 3) and "Traceback" not in errors, (row, film.returncode, errors)
    kept = len(frames(folder))
    assert film.returncode == 3 or kept == FRAMES, row
    assert film.returncode == 0 or (errors.count("\n") == 1 and "the same command resumes" in errors), errors
    whole = time.monotonic() - began
    sentence = errors.strip() if film.returncode else ""
    return dict(gap=round(longest, 1), ended=round(whole, 1), code=film.returncode, at_fault=at_fault, kept=kept) | {
        "told": sentence
    }


def send(processes: list[subprocess.Popen], number: int) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            process.send_signal(number)


def frames(folder: Path) -> list[Path]:
    return sorted(folder.glob("f_??.png"))


def compare(folder: Path, scene: Path, reference: list[bytes]) -> None:
    """Draws what is missing; every frame that was there stays as it is."""
    kept = {path: path.stat().st_mtime_ns for path in frames(folder)}
    manifest = folder / "f.frames.jsonl"
    listed = {json.loads(line)["file"] for line in manifest.read_text().splitlines()} if manifest.exists() else set()
    export(scene, "-o", folder / "f_##.png", *FILM)
    assert [path.read_bytes() for path in frames(folder)] == reference, "the frames have other bytes"
    assert all(path.stat().st_mtime_ns == changed for path, changed in kept.items() if path.name in listed)


def draw_reference(folder: Path) -> list[bytes]:
    (folder / "scene.toml").write_text(SCENE)
    export(folder / "scene.toml", "-o", folder / "f_##.png", *FILM)
    return [path.read_bytes() for path in frames(folder)]


def main() -> int:
    """Prints a line a run; the exit code is 1 if something was lost or hung."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="index of the first run")
    parser.add_argument("--output", type=Path, help="append one line a run")
    args = parser.parse_args()
    failures = 0
    with tempfile.TemporaryDirectory(prefix="farms-") as top:
        reference_folder = Path(top, "reference")
        reference_folder.mkdir()
        reference = draw_reference(reference_folder)
        for index in range(args.first, args.first + args.runs):
            folder = Path(top, str(index))
            folder.mkdir()
            try:
                row = run(folder, reference, random.Random(f"{args.seed}/{index}"), index)
            except (AssertionError, OSError, subprocess.TimeoutExpired) as error:
                row, failures = {"lost": str(error)[:1000]}, failures + 1
            row |= {"seed": args.seed, "index": index}
            print(json.dumps(row), flush=True)
            if args.output:
                with open(args.output, "a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
    print(f"{args.runs} runs, {failures} with a loss", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
