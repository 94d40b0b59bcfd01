"""`rayfold run`: evaluates a program's main on a target; without a program, an interactive prompt."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np

from renderer.cdollar.checker.values import DataValue
from renderer.cdollar.frontend.diagnostics import ProgramError
from renderer.cdollar.ir.dag import TooLarge
from renderer.cdollar.runtime.evaluate import (
    Result,
    build_main,
    evaluate_value,
    load_program,
    main_of,
    parse_assignments,
    save_npy,
)
from renderer.cdollar.runtime.explain import explained
from renderer.cdollar.runtime.repl import run_repl
from renderer.cdollar.targets.autotuner import write_schedule
from renderer.cdollar.targets.open_target import schedule_file, target_factory
from renderer.errors import InputError, KernelError, UnavailableError

MAX_JSON_VALUES = 4096  # elements of an array that --json prints


def run(args) -> int:
    """The command; returns its exit code. A program's errors start with file:line:col, as editors read them."""
    try:
        return evaluate(args)
    except ProgramError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KernelError as error:
        raise UnavailableError(f"{args.program}: the target {args.target or 'chosen here'} failed: {error}") from None
    except (RecursionError, TooLarge):
        raise InputError(
            f"{args.program}: nests deeper, or builds more, than the compiler takes; split it by `let`"
        ) from None
    except MemoryError:
        raise UnavailableError(f"{args.program}: needs more memory than there is") from None


def evaluate(args) -> int:
    program = Path(args.program) if args.program else None
    make_target = target_factory(args.target, program, getattr(args, "strict", False))
    if program is None:
        return run_repl(make_target)
    started = time.perf_counter()
    files, numbers = parse_assignments(args.inputs, "--in"), parse_assignments(args.set, "--set")
    compilation = load_program(program, make_target)
    span = main_of(compilation).declaration.name_span
    tune = getattr(args, "tune", False)
    compilation.target.explained = [] if args.explain or tune else None
    value = build_main(compilation, files, numbers)
    result = evaluate_value(compilation, value, span)
    seconds = time.perf_counter() - started
    if tune:
        write_schedule(compilation.target, schedule_file(program))
    if args.output:
        if result.array is None:
            raise ProgramError("CS0306", span, f"the result is a {result.type}, which no .npy file holds")
        save_npy(Path(args.output), result.array)
    if args.explain:
        node = value.nodes[0] if isinstance(value, DataValue) else value.node
        print(explained(compilation, node, compilation.target), file=sys.stderr if args.json else sys.stdout)
    print(as_json(args, result, compilation, seconds) if args.json else as_text(args, result))
    return 0


def as_text(args, result: Result) -> str:
    if result.array is None:
        return result.text
    if args.output:
        shape = " x ".join(map(str, result.array.shape)) or "one number"
        origin = f", first index {', '.join(map(str, result.origin))}" if any(result.origin) else ""
        return f"{args.output}: {result.type}, {shape}, {result.array.dtype}{origin}"
    if result.array.ndim == 0:
        return str(result.array[()])
    origin = f"first index {', '.join(map(str, result.origin))}\n" if any(result.origin) else ""
    return origin + np.array2string(result.array, threshold=1000, max_line_width=120)


def as_json(args, result: Result, compilation, seconds: float) -> str:
    array = result.array
    found = {
        "type": str(result.type),
        "shape": list(array.shape) if array is not None else None,
        "dtype": str(array.dtype) if array is not None else None,
        "origin": list(result.origin),
        "value": plain(array)
        if array is not None and array.size <= MAX_JSON_VALUES and not args.output
        else result.text or None,
        "target": compilation.target.name,
        "device": getattr(compilation.target, "device_name", "NumPy"),
        "seconds": round(seconds, 6),
        "output": args.output,
    }
    return json.dumps(found)


def plain(array: np.ndarray):
    """Numbers as JSON has them: NaN and infinities as text, records as objects."""
    if array.dtype.names:
        if array.ndim:
            return [plain(row) for row in array]
        return {name: plain(np.asarray(array[name])) for name in array.dtype.names}
    if array.ndim:
        return [plain(row) for row in array]
    number = array.item()
    return number if not isinstance(number, float) or np.isfinite(number) else str(number)
