"""The command `rayfold export`: its options. argparse's namespace ends here; no heavy library is imported."""

import argparse
import sys
from dataclasses import fields
from pathlib import Path

from renderer import arguments
from renderer.export.options import ExportOptions
from renderer.profile import profiled, stage


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the options of `rayfold export`."""
    add = command.add_argument
    add(
        "input",
        metavar="INPUT",
        help="scene .toml, mesh, .flame, .cb program, light field, or a PNG that Rayfold wrote",
    )
    add("-o", "--output", required=True, metavar="OUT", help=".png, .exr, a video, or frames as out_####.png")
    add("--size", type=arguments.size, metavar="WxH", help="in pixels (default: from the scene file)")
    add("--samples", type=arguments.positive, metavar="N", help="samples to accumulate (default: from the scene file)")
    add("--time", type=arguments.seconds, metavar="T", help="seconds into an animated scene (default 0)")
    add("--frames", metavar="A-B", help="frame numbers of a video or of out_####.png, such as 1-48")
    add("--fps", type=arguments.positive, default=24, metavar="FPS", help="frames a second of scene time (default 24)")
    add("--animation", metavar="NAME", help="of a model: name or number, from 0, of what plays (default: the first)")
    add("--variant", metavar="NAME", help="of a model: its material variant (default: the file's own materials)")
    add("--seed", type=arguments.seed, metavar="S", help="of the random numbers; the same seed gives the same picture")
    add("--device", default="auto", help="cuda:INDEX, opencl:PLATFORM:INDEX, cpu or auto")
    environment = "light of a model or scene: studio, overcast, sunset, none, or an .exr or .hdr file"
    add("--environment", metavar="NAME", help=environment)
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of the scene; repeatable")
    depth = "bits per channel: 8 or 16 of a PNG, 8 or 10 of a film (default 8)"
    add("--bit-depth", type=int, choices=(8, 10, 16), default=8, help=depth)
    transfer = "pq writes high dynamic range: Rec. 2020 in PQ, radiance 1 at 203 nits (default srgb)"
    add("--transfer", choices=("srgb", "pq"), default="srgb", help=transfer)
    tile = "draw in tiles of N x N (default: only large pictures)"
    add("--tile", type=arguments.positive, default=0, metavar="N", help=tile)
    add("--time-limit", type=arguments.duration, metavar="SECONDS", help="stop drawing then; exit code 3 if too early")
    add("--denoise", action="store_true", help="denoise, guided by albedo and normal, or by density (pyoidn)")
    add("--overwrite", action="store_true", help="draw frames again that are already done")
    add("--dry-run", action="store_true", help="print the plan and the memory it takes, and stop")
    light_field = "export a light field: OUT is a folder of its views"
    add("--light-field", type=arguments.grid, metavar="ROWSxCOLUMNS", help=light_field)
    baseline = "distance of neighboring cameras, in scene units (default: a disparity of 2 pixels at the target)"
    add("--baseline", type=float, metavar="B", help=baseline)
    add("--farm", metavar="CLUSTER", help="local:N processes, or a scheduler at tls://HOST:PORT or tcp://HOST:PORT")
    add("--insecure", action="store_true", help="allow a tcp:// farm, where whoever reaches it can run code")
    add("--split", choices=("tiles", "samples"), help="what a farm distributes of one picture (default: tiles)")
    noise = (
        "draw until the noise is below this: 1%% of white in a flame, of each pixel's luminance in a ray traced picture"
    )
    add("--noise", type=arguments.fraction, metavar="N%", help=noise)
    add("--flame", default="", metavar="N|NAME|all", help="which flame of a file, from 0; all: numbered pictures")
    add("--film", action="store_true", help="the flames of a file are key frames; frame N shows time N")
    add("--sheet", action="store_true", help="a contact sheet of all flames of a file")
    add("--json", action="store_true", help="print exactly one JSON object")
    add("--profile", action="store_true", help="say on stderr, or in --json, what each stage took since the start")


def export(args: argparse.Namespace) -> int:
    """Run `rayfold export`; returns the exit code."""
    options = options_of(args)
    if not options.profile:
        return _run(options)
    with profiled() as profile:
        code = _run(options)
        if not options.json:
            print(profile.table(), file=sys.stderr)
        return code


def _run(options: ExportOptions) -> int:
    with stage("importing"):
        if not options.farm and not options.dry_run:
            from renderer.gpu.ahead import open_ahead

            open_ahead(options.device)
        from renderer.export.run import run

    return run(options)


def options_of(args: argparse.Namespace) -> ExportOptions:
    """The parsed options as plain data."""
    values = {f.name: getattr(args, f.name) for f in fields(ExportOptions)}
    return ExportOptions(**values | {"input": Path(args.input), "output": Path(args.output)})
