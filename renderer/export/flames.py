"""`rayfold export pack.flame --flame all`: a picture of every flame of a file, numbered as in flam3-render."""

import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from renderer.errors import IncompleteError, UserError
from renderer.export.frames import FRAME_PLACEHOLDER, frame_path
from renderer.export.options import ExportOptions
from renderer.export.plan import make_plan
from renderer.export.render import InterruptHandler
from renderer.flames.xml.read import read_library
from renderer.formats.images import read_digest
from renderer.paths import find_input
from renderer.pictures import is_flame_file, picture_class
from renderer.plain import format_ignored
from renderer.profile import measured, stage

DIGITS = 5  # of a number that flam3-render adds to a name


def export_flames(options: ExportOptions, carry_out: Any) -> int:
    """Export every flame that can be read; returns the exit code, 3 if others were left out.

    `carry_out(plan, start, interrupt)` draws and writes one picture.
    """
    start = time.monotonic()
    path = find_input(options.input)
    for name in ("film", "sheet", "light_field", "frames", "dry_run"):
        if getattr(options, name):
            raise UserError(f"--flame all: not together with --{name.replace('_', '-')}")
    if not is_flame_file(path):
        raise UserError(f"--flame: {path} is no file of flames; allowed are .flame, .flam3")
    entries, _ = read_library(path)
    rows, interrupt = [], InterruptHandler()
    for entry in entries:
        if not entry.keyframe:
            print(f"rayfold: left out: {entry.error}", file=sys.stderr)
            continue
        output = numbered_path(options.output, entry.index)
        with stage("reading"):
            plan = make_plan(replace(options, flame=str(entry.index), output=output))
        began = time.monotonic()
        samples, device, _, finished = carry_out(plan, began, interrupt)
        if not finished:
            raise IncompleteError(f"{output}: not all samples were drawn; the pictures before it are complete")
        ignored = format_ignored(picture_class("flame").ignored(plan.scene.settings))
        rows.append(_row(entry.index, plan, samples, device, time.monotonic() - began, ignored))
        if not options.json:
            print(output)
    _print_summary(path, rows, options, time.monotonic() - start)
    return 0 if len(rows) == len(entries) else IncompleteError.exit_code


def numbered_path(output: Path, index: int) -> Path:
    """out.png and 3 make out00003.png, as flam3-render names it; out_##.png makes out_03.png."""
    if FRAME_PLACEHOLDER.search(output.name):
        return frame_path(output, index)
    return output.with_name(f"{output.stem}{index:0{DIGITS}d}{output.suffix}")


def _row(index: int, plan: Any, samples: int, device: str, seconds: float, ignored: list[str]) -> dict[str, Any]:
    return {
        "flame": index, "name": plan.scene.title, "output": str(plan.output), "size": list(plan.size),
        "samples": samples, "seconds": seconds, "device": device, "digest": read_digest(plan.output),
        "ignored": ignored,
    }  # fmt: skip


def _print_summary(path: Path, rows: list[dict[str, Any]], options: ExportOptions, seconds: float) -> None:
    """The JSON object of all pictures, and what was ignored, in one line."""
    ignored: dict[str, None] = {phrase: None for row in rows for phrase in row["ignored"]}
    if ignored:
        print(f"rayfold: {path}: ignored: {', '.join(list(ignored)[:12])}", file=sys.stderr)
    if options.json:
        outputs = [row["output"] for row in rows]
        print(
            json.dumps({"output": outputs, "flames": rows, "seconds": seconds, "ignored": list(ignored)} | measured())
        )
