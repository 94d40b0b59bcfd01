"""`rayfold demo`: the demo picture, four kinds of panels side by side."""

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `rayfold demo`."""
    parser.add_argument("-o", "--output", default="demo.png", metavar="OUT", help="default: demo.png")
    parser.add_argument("--device", default="auto", help="cuda:INDEX, opencl:PLATFORM:INDEX, cpu or auto")
    parser.add_argument("--json", action="store_true", help="print exactly one JSON object")


def command(args: argparse.Namespace) -> int:
    """Exports the bundled scene `demo`; returns the exit code."""
    from renderer.export import command as export

    parser = argparse.ArgumentParser()
    export.add_arguments(parser)
    json = ["--json"] if args.json else []
    return export.export(parser.parse_args(["demo", "-o", args.output, "--device", args.device, *json]))
