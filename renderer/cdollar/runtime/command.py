"""`rayfold run`: its options and errors. Heavy modules are imported when it runs, not for --help."""

import argparse
import gc
import sys

from renderer.errors import InputError, KernelError, UnavailableError, UserError
from renderer.paths import find_input
from renderer.system import arguments, trust
from renderer.system.outputs import own_outputs
from renderer.system.process import supervise


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `run`."""
    add = parser.add_argument
    add("program", nargs="?", metavar="PROGRAM.cb", help="without one, an interactive prompt")
    files = "fills a parameter: .npy, .csv or a picture"
    add("--in", action="append", default=[], dest="inputs", metavar="NAME=FILE", help=files)
    add("--set", action="append", default=[], metavar="NAME=VALUE", help="fills a scalar parameter")
    add("--target", choices=("numpy", "opencl", "cuda", "glsl"), help="where it runs (default: best device)")
    add("-o", "--output", metavar="FILE", help="write the result: .npy, .png, .exr or .csv")
    add("--strict", action="store_true", help="the same bits on every target for + - * / sqrt")
    add("--tune", action="store_true", help="measure schedules, save the fastest in PROGRAM.schedule.toml")
    shown = "show the DAG, why it was split, the kernels, what each costs and a roofline"
    add("--explain", action="store_true", help=shown)
    add("--graph", metavar="FILE.svg", help="draw the DAG, colored by kernel, with what each kernel costs")
    add("--json", action="store_true", help="print exactly one JSON object")
    add("--force", action="store_true", help=arguments.FORCE)
    limit = "end the run then, with exit code 3; its outputs stay as they were"
    add("--time-limit", type=arguments.duration, metavar="SECONDS", help=limit)
    trust.add_arguments(parser, ("program", "inputs", "output", "graph"))


def run(options: argparse.Namespace) -> int:
    """Run the command; returns its exit code.

    A program's errors start with file:line:column, as editors read them. A kernel that never ends does not keep Ctrl-C
    waiting: a program runs in a child process; the prompt, which has state, does not.
    """
    if trust.Limits.refuses_programs:  # NumPy interprets the program: nothing is compiled or runs on a device
        if options.target not in (None, "numpy"):
            raise UserError(f"--target {options.target}: --untrusted runs a program by numpy alone")
        options.target, trust.Limits.refuses_programs = "numpy", False  # load_program() refuses by this flag
    if options.program:
        supervise()
    gc.disable()  # imports leave no garbage, and the collector would take 8 % of their time
    from renderer.cdollar.frontend.diagnostics import ProgramError
    from renderer.cdollar.runtime.run_program import run_program
    from renderer.cdollar.targets.open_target import target_factory

    gc.enable()
    name = options.program
    try:
        if not name:
            from renderer.cdollar.runtime.repl import run_repl

            return run_repl(target_factory(options.target, None, options.strict))
        with own_outputs(options.output, options.graph, force=options.force):
            return run_program(
                find_input(name, (".cb",)), options.inputs, options.set, options.target, options.output,
                strict=options.strict, tune=options.tune, explained=options.explain, as_json=options.json,
                drawn=options.graph,
            )  # fmt: skip
    except ProgramError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KernelError as error:
        raise UnavailableError(f"{name}: the target {options.target or 'chosen here'} failed: {error}") from None
    except RecursionError:
        raise InputError(f"{name}: nests deeper than the compiler takes; split it by `let`") from None
    except MemoryError:
        raise UnavailableError(f"{name}: needs more memory than there is") from None
