"""Kills commands at random moments: nothing complete may be lost, and the same command must go on to the same end.

    python -m tests.kills [--kills N] [--seed S] [--only KIND]... [--output F.jsonl]

Each kill is a function of (kind, seed, index). A process gets SIGKILL, SIGTERM or SIGINT at a random moment of its run;
then what it left is compared with what an undisturbed run leaves, byte for byte: an output that was there before is
intact or the new one is whole, and only frames that the next run goes on with lie beside it. Processes that it started
must end, too, and the next run may not find its claims.
"""

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from renderer.formats.images import read_pixels
from renderer.paths import ROOT
from renderer.system.files import read_json_lines
from renderer.system.process import INTERRUPTED
from renderer.window.state.session import restore
from tests.bench.helpers import METRONOME, git, repository
from tests.export.export_helpers import SCENE

LIMIT = 120.0  # seconds of one command
ORPHAN_SECONDS = 20.0  # after which no process of a killed command may be left
NUMBERS = 1 << 19  # of arrays
KEYS = [{"kind": "key", "code": "KeyD", "down": down} for down in (True, False)]  # doubles or halves the iterations


@dataclass
class Kind:
    """A command that is killed: its words, the files it makes, and what must hold after a kill."""

    name: str
    words: Callable[[Path], list[str]]
    outputs: str = ""  # a glob of the files that must be whole, if there, and equal to the reference's in the end
    records: str = ""  # a file of lines that only grows
    codes: tuple[int, ...] = (0,)  # of the command that goes on
    goes_on: tuple[str, ...] = ()  # what a killed run may leave for the next
    seconds: float = 0.0  # of an undisturbed run
    reference: dict[str, bytes] = field(default_factory=dict)


OLD = b"what was there before\n"  # and the seal of a text that the program wrote, so that it may be replaced
OLD += f"<!-- Rayfold {hashlib.sha256(OLD).hexdigest()} -->\n".encode()


def export(*words: str) -> Callable[[Path], list[str]]:
    return lambda folder: ["export", str(folder / "scene.toml"), *(word.format(folder) for word in words)]


def bench(action: str, *words: str) -> Callable[[Path], list[str]]:
    more = ["--seconds", "0.02", "--json", *words]
    return lambda folder: ["bench", action, "mine", "--repo", f"{folder}/own", "-o", f"{folder}/r.jsonl", *more]


FRAMES = ("film.mp4.frames", "film.mp4.frames/*")
MIRRORS = str(ROOT / "scenes/mirrors.toml")
KINDS = [
    Kind("still", export("-o", "{}/a.png", "--size", "600x400", "--samples", "20"), "a.png"),
    Kind("frames", export("-o", "{}/f_##.png", "--frames", "1-12"), "f_*.png", goes_on=("f.frames.jsonl",)),
    Kind("film", export("-o", "{}/film.mp4", "--frames", "1-12"), "film.mp4", goes_on=FRAMES),
    Kind(
        "light field",
        lambda folder: (
            ["export", MIRRORS, "-o", f"{folder}/views", "--light-field", "2x3", "--size", "32x24"] + ["--samples", "2"]
        ),
        "views/*.png",
        goes_on=("views", "views/*.jsonl"),
    ),
    Kind("solve", lambda folder: ["solve", f"{folder}/band.npz", f"{folder}/b.npy", "-o", f"{folder}/x.npy"], "x.npy"),
    Kind("run", lambda folder: ["run", f"{folder}/a.cb", "--target", "numpy", "-o", f"{folder}/x.npy"], "x.npy"),
    Kind("bench run", bench("run"), records="r.jsonl"),
    Kind("bench ab", bench("ab", "--base", "HEAD", "--pairs", "2", "--max-pairs", "2"), "", "r.jsonl", (0, 1, 3)),
    Kind("session", lambda folder: ["serve", str(folder / "scene.toml"), "--port", "0", "--size", "200x150"]),
]


def start(words: list[str], folder: Path) -> subprocess.Popen:
    environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}
    command = [sys.executable, str(ROOT / "main.py"), *words]
    pipes = dict(stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return subprocess.Popen(command, env=environment, start_new_session=True, **pipes)


def prepare(folder: Path, kind: Kind) -> Path:
    folder.mkdir(parents=True)
    (folder / "scene.toml").write_text(SCENE)
    if kind.name == "solve":
        rng = np.random.default_rng(1)
        np.savez(folder / "band.npz", ab=rng.random((3, NUMBERS)) + np.array([[0], [3], [0]]), kl=1, ku=1)
        np.save(folder / "b.npy", rng.random(NUMBERS))
    if kind.name == "run":
        (folder / "a.cb").write_text(f"float[] main() {{ var f(i : 0..{NUMBERS}) = 1.0 * i; return f; }}")
    if kind.name.startswith("bench"):
        repository(folder / "own", tests__fps__mine_py=METRONOME)
    return folder


def files(folder: Path, pattern: str) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.glob(pattern)} if pattern else {}


def measure(kind: Kind, folder: Path) -> None:
    """An undisturbed run: its files, and how long it takes."""
    prepare(folder, kind)
    began = time.monotonic()
    if kind.name == "session":
        kind.seconds = 7.0  # it saves every few seconds
        return
    process = start(kind.words(folder), folder)
    _, errors = process.communicate(timeout=LIMIT)
    assert process.returncode in kind.codes, errors
    kind.seconds, kind.reference = time.monotonic() - began, files(folder, kind.outputs)
    assert bool(kind.reference) == bool(kind.outputs)


def wait(process: subprocess.Popen, seconds: float, kind: Kind) -> None:
    """Waits, and types into a window meanwhile."""
    end = time.monotonic() + seconds
    if kind.name == "session":
        base, _, token = process.stdout.readline().strip().partition("?token=")
        headers = {"Authorization": f"Bearer {token}"}
        while time.monotonic() < end:
            body = json.dumps(KEYS).encode()
            urllib.request.urlopen(urllib.request.Request(f"{base}events", body, headers), timeout=20).close()
            time.sleep(0.05)
    with suppress(subprocess.TimeoutExpired):
        process.wait(max(0.0, end - time.monotonic()))


def kill(kind: Kind, folder: Path, rng: random.Random) -> dict:
    """One kill, and the command again; AssertionError where something is lost."""
    number = rng.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGINT))
    moment = rng.uniform(0.1, 1.05) * kind.seconds
    if kind.outputs and "*" not in kind.outputs and rng.random() < 0.5:
        (folder / kind.outputs).write_bytes(OLD)
    before = every_file(folder)
    process = start(kind.words(folder), folder)
    wait(process, moment, kind)
    ended = process.poll() is not None
    process.send_signal(number)
    _, errors = process.communicate(timeout=LIMIT)
    assert process.returncode in (-number, INTERRUPTED, *kind.codes, -signal.SIGTERM), (process.returncode, errors)
    assert "Traceback" not in errors and "internal error" not in errors, errors
    wait_for_group(process.pid)
    resumed = [*kind.goes_on, kind.outputs, kind.records, "*.unfinished-*"]  # of a still that Ctrl-C ended
    litter = {name for name in every_file(folder) - before if not any(Path(name).match(one) for one in resumed if one)}
    assert kind.name == "session" or not litter, f"{sorted(litter)[:3]} are left beside the output"
    row = {"kind": kind.name, "signal": number.name, "moment": round(moment, 3), "code": process.returncode}
    (check_session if kind.name == "session" else check_files)(kind, folder)
    return row | {"ended_before": ended}


def wait_for_group(group: int) -> None:
    """Waits until no process of the killed command is left."""
    end = time.monotonic() + ORPHAN_SECONDS
    with suppress(ProcessLookupError):
        while True:
            os.killpg(group, 0)
            assert time.monotonic() < end, "a process that the command started is left"
            time.sleep(0.05)


def every_file(folder: Path) -> set[str]:
    """Files, and folders that hold none, below a folder; what git and windows keep for themselves left out."""
    names = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() or not any(path.iterdir())}
    return {name for name in names if not name.startswith(("own/", "state"))}


def check_files(kind: Kind, folder: Path) -> None:
    stopped_early = kind.name == "still" and files(folder, kind.outputs) != kind.reference  # what was drawn is kept
    for name, data in files(folder, kind.outputs).items():
        assert data in (kind.reference[name], OLD) or stopped_early and not data.startswith(OLD), f"{name} is torn"
        if stopped_early and data != OLD:
            read_pixels(folder / name)  # whole
    listed = {row["file"] for path in folder.rglob("*.frames.jsonl") for row in read_json_lines(path)}
    kept = {path: path.stat().st_mtime_ns for path in folder.rglob("*.png") if path.name in listed}
    records = folder / kind.records
    lines = [line for line in records.read_bytes().split(b"\n")[:-1]] if kind.records and records.exists() else []
    assert all(json.loads(line) for line in lines), "a line that was complete is damaged"
    process = start(kind.words(folder), folder)
    _, errors = process.communicate(timeout=LIMIT)
    assert process.returncode in kind.codes, (process.returncode, errors)
    assert files(folder, kind.outputs) == kind.reference, "the same command goes on to other files"
    for path, changed in kept.items():
        assert not path.exists() or path.stat().st_mtime_ns == changed, f"{path.name} was done and drawn again"
    if kind.records:
        assert records.read_bytes().split(b"\n")[: len(lines)] == lines, "records were lost"
        assert read_json_lines(records)
    if kind.name == "bench ab":
        assert git("worktree", "list", tree=folder / "own").count("\n") == 0 and not list(folder.glob("own/.bench/*"))


def check_session(kind: Kind, folder: Path) -> None:
    saved = sorted((folder / "state").rglob("*.json"))
    for path in saved:
        assert restore(path).scenes[0].title == "Julia in motion", path
    if not saved:
        return  # killed before it saved
    process = start(["serve", "--restore", "--port", "0", "--size", "200x150"], folder)
    address = process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=LIMIT)
    assert address.startswith("http://") and process.returncode == INTERRUPTED, errors


def main() -> int:
    """Prints a line a kill and a table; the exit code is 1 if something was lost."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=[kind.name for kind in KINDS], action="append", help="repeatable")
    parser.add_argument("--output", type=Path, help="append one line a kill")
    args = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells let jobs in the background, and theirs, ignore it
    kinds, failures = [kind for kind in KINDS if kind.name in (args.only or [kind.name])], 0
    with tempfile.TemporaryDirectory(prefix="kills-") as top:
        for index in range(args.kills):
            kind = kinds[index % len(kinds)]
            if not kind.seconds:
                measure(kind, Path(top, kind.name.replace(" ", "-")))
            rng = random.Random(f"{kind.name}/{args.seed}/{index}")
            try:
                row = kill(kind, prepare(Path(top, str(index)), kind), rng)
            except (AssertionError, OSError, ValueError, subprocess.TimeoutExpired) as error:
                row, failures = {"kind": kind.name, "lost": str(error)[:1000]}, failures + 1
            row |= {"seed": args.seed, "index": index}
            print(json.dumps(row), flush=True)
            if args.output:
                with open(args.output, "a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
    print(f"{args.kills} kills, {failures} with a loss", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
