"""`rayfold export pack.flame --flame all`: draws every flame of a file, numbered as by flam3-render.

run.py calls export_flames(), which draws the flames one after another, or on a farm, one a task.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from renderer.errors import IncompleteError, UserError
from renderer.export.farm import chosen_farm, render_stills
from renderer.export.frames import FRAME_PLACEHOLDER, frame_path
from renderer.export.options import ExportOptions
from renderer.export.plan import Drawn, ExportPlan, check_target, make_plan
from renderer.export.render import InterruptHandler
from renderer.flames.xml.read import read_library
from renderer.formats.images import read_digest
from renderer.paths import find_input
from renderer.pictures import is_flame_file, picture_class
from renderer.plain import Json, format_ignored, printable
from renderer.system.profile import measured, stage

CarryOut = Callable[[ExportPlan, float, InterruptHandler], Drawn]  # run.carry_out(plan, start, interrupt)
Rows = Iterator[tuple[int, ExportPlan, int, str, float]]  # number, plan, samples, device, seconds
DIGITS = 5  # flam3-render appends a number of five digits to a file name


def export_flames(options: ExportOptions, carry_out: CarryOut) -> int:
    """Export every flame that can be read; returns the exit code, 3 if others were left out.

    `carry_out(plan, start, interrupt)` draws and writes one picture.
    """
    start = time.monotonic()
    path = find_input(options.input)
    options.refuse("--flame all", "film", "sheet", "light_field", "frames", "dry_run")
    if not is_flame_file(path):
        raise UserError(f"--flame: {path} is no file of flames; allowed are .flame, .flam3")
    entries, _ = read_library(path)
    shown = [entry.index for entry in entries if entry.keyframe]  # entries that cannot be read have no key frame
    for index in shown:
        check_target(numbered_path(options.output, index), options.force)
    rows = []
    for row in (_drawn_on_farm if options.farm else _drawn)(options, shown, carry_out):
        rows.append(_row(*row))
        if not options.json:
            print(rows[-1]["output"])
    rows.sort(key=lambda row: row["flame"])
    _print_summary(path, rows, options, time.monotonic() - start)
    return 0 if len(rows) == len(entries) else IncompleteError.exit_code


def _flame_plan(options: ExportOptions, index: int) -> ExportPlan:
    with stage("reading"):
        return make_plan(replace(options, flame=str(index), output=numbered_path(options.output, index)))


def _drawn(options: ExportOptions, shown: Sequence[int], carry_out: CarryOut) -> Rows:
    """Draw the flames numbered `shown` in this process, one after another."""
    interrupt = InterruptHandler()
    for index in shown:
        began, plan = time.monotonic(), _flame_plan(options, index)
        drawn = carry_out(plan, began, interrupt)
        if not drawn.is_complete:
            raise IncompleteError(f"{plan.output}: not all samples were drawn; the pictures before it are complete")
        yield index, plan, drawn.samples, drawn.device, time.monotonic() - began


def _drawn_on_farm(options: ExportOptions, shown: Sequence[int], carry_out: CarryOut) -> Rows:
    """Draw the flames numbered `shown` on a farm, one a task; yields in the order of completion."""
    options.refuse("--flame all --farm", "split", "time_limit")
    plans = [_flame_plan(options, index) for index in shown]
    for k, answer in render_stills(chosen_farm(options), plans):
        yield shown[k], plans[k], answer["samples"], answer["device"], answer["seconds"]


def numbered_path(output: Path, index: int) -> Path:
    """out.png and 3 make out00003.png, as flam3-render names it; out_##.png makes out_03.png."""
    if FRAME_PLACEHOLDER.search(output.name):
        return frame_path(output, index)
    return output.with_name(f"{output.stem}{index:0{DIGITS}d}{output.suffix}")


def _row(index: int, plan: ExportPlan, samples: int, device: str, seconds: float) -> Json:
    return {
        "flame": index, "name": plan.scene.title, "output": str(plan.output), "size": list(plan.size),
        "samples": samples, "seconds": seconds, "device": device, "digest": read_digest(plan.output),
        "ignored": format_ignored(picture_class("flame").ignored(plan.scene.settings)),
    }  # fmt: skip


def _print_summary(path: Path, rows: list[Json], options: ExportOptions, seconds: float) -> None:
    """Prints what was ignored, one line on stderr, and with --json the object of all pictures."""
    ignored: dict[str, None] = {phrase: None for row in rows for phrase in row["ignored"]}
    if ignored:
        print(printable(f"rayfold: {path}: ignored: {', '.join(ignored)}"), file=sys.stderr)
    if options.json:
        facts = {"output": [row["output"] for row in rows], "flames": rows, "ignored": list(ignored)}
        print(json.dumps(facts | {"seconds": seconds} | measured()))
