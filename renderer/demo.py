"""`rayfold demo`: the demo picture, four kinds of panels side by side."""

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `rayfold demo`."""
    parser.add_argument("-o", "--output", default="demo.png", metavar="OUT", help="default: demo.png")
    parser.add_argument("--device", default="auto", help="cuda:INDEX, opencl:PLATFORM:INDEX, cpu or auto")
    parser.add_argument("--json", action="store_true", help="print exactly one JSON object")


def command(args: argparse.Namespace) -> int:
    """Exports the bundled scene `demo`; returns the exit code."""
    from renderer.export.options import ExportOptions
    from renderer.export.run import run

    return run(ExportOptions(Path("demo"), Path(args.output), device=args.device, json=args.json))
