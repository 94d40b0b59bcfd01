"""`rayfold gallery`: draws twenty bundled scenes, as pictures for the web or as posters."""

import argparse
import json
import sys
import time
from pathlib import Path

from renderer.errors import InputError, UserError
from renderer.export.frames import is_of
from renderer.export.options import ExportOptions
from renderer.export.plan import DEFAULT_SIZE, DENOISED, ExportPlan, load_scene, make_plan
from renderer.export.render import InterruptHandler
from renderer.export.run import carry_out
from renderer.formats.images import read_digest, read_recipe
from renderer.pictures import make_recipe
from renderer.plain import Json
from renderer.records import replace
from renderer.system import arguments
from renderer.system.files import resolve
from renderer.system.outputs import claimed
from renderer.system.process import INTERRUPTED

SCENES = (
    "jewels", "glassware", "city", "clockwork", "terrace", "grove", "cloth", "serpent", "filigree", "petals",
    "still_life", "cornell", "mirrors", "focus", "fossil", "dome", "anemone", "mandelbrot", "julia", "maple",
)  # fmt: skip
WEB_SIDE = 512  # pixels of a picture's longer side: twenty of them take less than 6 MB
PRINT_SIDE = 4961  # longer side of A3 at 300 dots an inch


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the options of `rayfold gallery`."""
    add = command.add_argument
    add("names", metavar="SCENE", nargs="*", help=f"some of {', '.join(SCENES)} (default: all)")
    add("-o", "--output", metavar="FOLDER", type=Path, default=Path("gallery"), help="of the pictures (gallery)")
    add("--print", action="store_true", help=f"posters: {PRINT_SIDE} pixels the longer side, 16 bits a channel")
    add("--denoise", action="store_true", help="as export does; fractals have no random noise")
    add("--samples", type=arguments.positive, metavar="N", help="samples to accumulate (default: from the scene)")
    add("--device", default="auto", help="cuda:INDEX, opencl:PLATFORM:INDEX, cpu or auto")
    add("--overwrite", action="store_true", help="draw pictures again that are already done")
    add("--json", action="store_true", help="print exactly one JSON object")
    add("--force", action="store_true", help=arguments.FORCE)


def command(args: argparse.Namespace) -> int:
    """Run `rayfold gallery`; 130 after Ctrl-C, and the same command then draws what is missing."""
    unknown = [name for name in args.names if name not in SCENES]
    if unknown:
        raise UserError(f"gallery: no scene {unknown[0]!r} in it; allowed are {', '.join(SCENES)}")
    try:
        args.output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        found = "is a file" if args.output.is_file() else f"cannot be made: {error.strerror}"
        raise UserError(f"-o {args.output}: {found}; it must be a folder") from error
    rows = []
    for name in args.names or SCENES:
        plan = _plan(name, args)
        with claimed(plan.output, force=args.force):
            row = _draw(plan, args.overwrite)
        if row is None:
            return INTERRUPTED
        rows.append({"scene": name} | row)
        if not args.json:
            print(row["output"])
            is_refused = args.denoise and not plan.options.denoise
            note = f"; a {plan.scene.picture} picture is not denoised" if is_refused else ""
            print(f"{name}: {row['seconds']:.1f} s on {row['device']}{note}", file=sys.stderr)
    if args.json:
        print(json.dumps({"pictures": rows}))
    return 0


def _plan(name: str, args: argparse.Namespace) -> ExportPlan:
    """The export plan of one scene, scaled to the longer side of gallery pictures."""
    output, depth = args.output / f"{name}.png", 16 if args.print else 8
    options = ExportOptions(
        Path(name), output, samples=args.samples, device=args.device, bit_depth=depth, force=args.force
    )
    scene = load_scene(options)
    width, height = scene.size or DEFAULT_SIZE
    factor = (PRINT_SIDE if args.print else WEB_SIDE) / max(width, height)
    size = max(1, round(width * factor)), max(1, round(height * factor))
    return make_plan(replace(options, size=size, denoise=args.denoise and scene.picture in DENOISED), scene)


def _draw(plan: ExportPlan, overwrite: bool) -> Json | None:
    """Draw the picture unless its file is done; facts for the JSON row, None after Ctrl-C, which leaves no file."""
    start, interrupt = time.monotonic(), InterruptHandler()
    if not overwrite and _is_done(plan):
        return _row(plan.output, 0.0, "none: it was done")
    drawn = carry_out(plan, start, interrupt, all_or_nothing=True)
    return _row(plan.output, time.monotonic() - start, drawn.device) if drawn.is_complete else None


def _row(path: Path, seconds: float, device: str) -> Json:
    digest, size = read_digest(path), path.stat().st_size
    return {"output": str(path), "seconds": seconds, "device": device, "digest": digest, "bytes": size}


def _is_done(plan: ExportPlan) -> bool:
    """True if the file holds this picture: the same scene, size and number of samples, denoised or not."""
    try:
        recipe = read_recipe(plan.output)
    except (InputError, UserError):  # no such file, or a picture of another program
        return False
    facts: Json = dict(size=plan.size, samples=plan.samples, time=plan.time) | plan.options.picture_facts()
    return is_of(recipe, make_recipe(plan.scene, resolve(plan.output).parent, **facts))  # paths from the file's folder
