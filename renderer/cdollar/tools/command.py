"""`rayfold cdollar`: formats programs, or serves an editor.

Compilers are imported inside of functions only, so that `rayfold --help` starts fast.
"""

import argparse
import json
import os
import sys
from pathlib import Path

from renderer.errors import InputError
from renderer.system import trust
from renderer.system.files import resolve


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions of `cdollar`."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    about = "formats programs: spaces and indentation; comments and line breaks stay"
    format_ = actions.add_parser("format", help=about)
    format_.add_argument("files", nargs="+", metavar="FILE.cb", help="rewritten in place; - is stdin, to stdout")
    format_.add_argument("--check", action="store_true", help="write nothing; exit code 1 if a file would change")
    format_.add_argument("--json", action="store_true", help="print exactly one JSON object")
    trust.add_arguments(format_, ("files",))  # --untrusted and its limits, for these files
    actions.add_parser("serve", help="the language server, for editors, on stdin and stdout (extra `lsp`)")


def command(options: argparse.Namespace) -> int:
    """Run the command; returns its exit code."""
    if options.action == "serve":
        from renderer.cdollar.tools.language_server import build

        server = build()
        with os.fdopen(os.dup(0), "rb") as stdin, os.fdopen(os.dup(1), "wb") as stdout:  # the server closes both copies
            server.start_io(stdin, stdout)
        return 0
    return format_files(options.files, options.check, options.json)


def format_files(names: list[str], check: bool, as_json: bool) -> int:
    """Format files in place, all or none of them; 1 if `check` finds one that would change."""
    from renderer.cdollar.frontend.diagnostics import ProgramError, SourceFile
    from renderer.cdollar.frontend.parser import parse
    from renderer.cdollar.runtime.evaluate import read_source
    from renderer.cdollar.tools.formatter import format_text
    from renderer.system.outputs import write_text

    for name in names:
        if name != "-" and Path(name).suffix not in (".cb", ""):
            raise InputError(f"{name}: is no .cb file; nothing is written")
        target = resolve(name)
        if os.path.islink(name) and target.suffix != Path(name).suffix:
            raise InputError(f"{name}: is a link to {target}, which is no {Path(name).suffix} file; nothing is written")
    try:
        given = [read_source(Path(name)) if name != "-" else SourceFile(name, sys.stdin.read()) for name in names]
        for source in given:
            parse(source)  # raises ProgramError: half a program may have other spaces than the whole
        texts = [source.text for source in given]
        results = [format_text(text, name) for text, name in zip(texts, names, strict=True)]
    except ProgramError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    changed = [n for n, text, result in zip(names, texts, results, strict=True) if text != result]
    for name, result in zip(names, results, strict=True):
        if name == "-" and not as_json and not check:
            sys.stdout.write(result)
        elif name in changed and name != "-" and not check:
            write_text(Path(name), result)
    if as_json:
        print(json.dumps({"changed": changed, "unchanged": [name for name in names if name not in changed]}))
    else:
        for name in changed:
            print(f"{name}: {'would change' if check else 'formatted'}", file=sys.stderr)
    return int(check and bool(changed))
