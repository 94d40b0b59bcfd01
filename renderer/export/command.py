"""The command `rayfold export`. argparse's namespace ends here; no heavy library is imported."""

import argparse
import sys

from renderer.export.options import ExportOptions, add_arguments, parse_options
from renderer.system.process import supervise
from renderer.system.profile import profiled, stage

__all__ = ["add_arguments", "export"]


def export(args: argparse.Namespace) -> int:
    """Run `rayfold export`; returns the exit code."""
    options = parse_options(args)
    if not options.profile:
        return _run(options)
    with profiled() as profile:
        code = _run(options)
        if not options.json:
            print(profile.table(), file=sys.stderr)
        return code


def _run(options: ExportOptions) -> int:
    """Starts the driver while the export is imported, then exports."""
    if options.farm:
        supervise()  # dask's threads and processes must not keep Ctrl-C waiting
    with stage("importing"):
        if not options.farm and not options.dry_run:
            from renderer.gpu.ahead import open_ahead

            open_ahead(options.device)
        from renderer.export.run import run

    return run(options)
