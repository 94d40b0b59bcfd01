"""Runs a program's main on a target and prints or writes its result."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from renderer.cdollar.checker.target import Target
from renderer.cdollar.checker.values import DataValue, FunctionValue
from renderer.cdollar.frontend.diagnostics import ProgramError
from renderer.cdollar.ir.dag import Node
from renderer.cdollar.runtime.costs import Ceilings, ceilings_of, parts_of
from renderer.cdollar.runtime.evaluate import Result, build_main, evaluate_value, load_program, main_of, save_npy
from renderer.cdollar.runtime.explain import explain
from renderer.cdollar.runtime.graph import graph_of, svg
from renderer.cdollar.runtime.parameters import parse_assignments
from renderer.cdollar.runtime.pictures import write_picture
from renderer.cdollar.targets.autotuner import write_schedule
from renderer.cdollar.targets.open_target import schedule_file, target_factory
from renderer.errors import UserError
from renderer.formats.tables import table_text

OUTPUT_SUFFIXES = (".npy", ".png", ".exr", ".csv")
MAX_JSON_VALUES = 4096  # elements of an array that --json prints


def run_program(
    program: Path,
    inputs: Sequence[str] = (),
    numbers: Sequence[str] = (),
    target: str | None = None,
    output: str | None = None,
    strict: bool = False,
    tune: bool = False,
    explained: bool = False,
    as_json: bool = False,
    drawn: str | None = None,
) -> int:
    """Run a program; returns the exit code.

    `inputs` are NAME=FILE.npy, `numbers` NAME=VALUE. Raises UserError, or ProgramError with the source location.
    """
    if output:
        check_output(Path(output))
    if drawn:
        check_graph_file(Path(drawn))
    make_target = target_factory(target, program, strict)
    started = time.perf_counter()
    files, values = parse_assignments(inputs, "--in"), parse_assignments(numbers, "--set")
    compilation = load_program(program, make_target)
    span = main_of(compilation).declaration.name_span
    compilation.target.trace = [] if explained or tune or drawn else None
    compilation.target.launch_seconds = [] if explained or drawn else None
    value = build_main(compilation, files, values)
    result = evaluate_value(compilation, value, span)
    seconds = time.perf_counter() - started
    if tune:
        write_schedule(compilation.target, schedule_file(program))
    if output:
        if result.array is None:
            raise ProgramError("CS0306", span, f"the result is a {result.type}, which no file holds")
        write_result(Path(output), result)
    if explained or drawn:
        assert isinstance(value, (DataValue, FunctionValue)), "main returned it"
        ceilings = ceilings_of(compilation.target)
        if explained:
            print(explain(compilation, value.node, ceilings), file=sys.stderr if as_json else sys.stdout)
        if drawn:
            write_graph(Path(drawn), compilation.target, value.node, program.name, ceilings)
    if as_json:
        facts = {
            "target": compilation.target.name,
            "device": compilation.target.device_name,
            "seconds": round(seconds, 6),
            "output": output,
        }
        print(json.dumps(result_facts(result, with_value=not output) | facts))
    else:
        print(result_text(result, output))
    return 0


def check_graph_file(path: Path) -> None:
    """Raise UserError, before anything runs, for a file that no graph is written to."""
    if path.suffix.lower() != ".svg":
        raise UserError(f"--graph {path}: {path.suffix or 'no suffix'} is not written; allowed is .svg")
    if not path.parent.is_dir():
        raise UserError(f"--graph {path}: the folder {path.parent} does not exist")


def write_graph(path: Path, target: Target, root: Node, title: str, ceilings: Ceilings | None) -> None:
    """Draw the graph of a run: after the passes, if the target has some."""
    from renderer.formats.images import atomic_write  # imports Pillow

    passed = [node for kind, node, _ in target.trace or [] if kind == "passes"]
    text = svg(graph_of(passed[-1] if passed else root, parts_of(target)), title, ceilings)
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def check_output(path: Path) -> None:
    """Raise UserError, before anything runs, for a file that is not of a kind that results are written to."""
    if path.suffix.lower() not in OUTPUT_SUFFIXES:
        found = path.suffix or "no suffix"
        raise UserError(f"-o {path}: {found} is not written; allowed are {', '.join(OUTPUT_SUFFIXES)}")
    if not path.parent.is_dir():
        raise UserError(f"-o {path}: the folder {path.parent} does not exist")


def write_result(path: Path, result: Result) -> None:
    """Write a result as the suffix of its file says; an old file stays whole if anything fails. Raises UserError."""
    assert result.array is not None
    suffix = path.suffix.lower()
    if suffix in (".png", ".exr"):
        write_picture(path, result.array, getattr(result.type, "result", result.type))
    elif suffix == ".npy":
        save_npy(path, result.array)
    elif result.array.ndim > 2 or result.array.dtype.names and result.array.ndim > 1:
        shape = " x ".join(map(str, result.array.shape))
        raise UserError(f"-o {path}: the result is {shape} of {result.type}; a table has one or two dimensions")
    else:
        from renderer.formats.images import atomic_write  # imports Pillow

        with atomic_write(path) as temporary:
            temporary.write_text(table_text(result.array), encoding="utf-8")


def result_text(result: Result, output: str | None) -> str:
    """The result for a reader, or what was written to `output`."""
    if result.array is None:
        return result.text
    origin = f"first index {', '.join(map(str, result.origin))}" if any(result.origin) else ""
    if output:
        shape = " x ".join(map(str, result.array.shape)) or "one number"
        return f"{output}: {result.type}, {shape}, {result.array.dtype}{', ' + origin if origin else ''}"
    if result.array.ndim == 0:
        return str(result.array[()])
    return (origin + "\n" if origin else "") + np.array2string(result.array, threshold=1000, max_line_width=120)


def result_facts(result: Result, with_value: bool) -> dict[str, Any]:
    """The result as JSON has it; large arrays without their values."""
    array = result.array
    value = result.text or None
    if array is not None and array.size <= MAX_JSON_VALUES and with_value:
        value = json_value(array)
    return {
        "type": str(result.type),
        "shape": list(array.shape) if array is not None else None,
        "dtype": str(array.dtype) if array is not None else None,
        "origin": list(result.origin),
        "value": value,
    }


def json_value(array: np.ndarray) -> Any:
    """Numbers as JSON has them: NaN and infinities as strings, records as objects."""
    if array.ndim:
        return [json_value(row) for row in array]
    if array.dtype.names:
        return {name: json_value(np.asarray(array[name])) for name in array.dtype.names}
    number = array.item()
    return number if not isinstance(number, float) or np.isfinite(number) else str(number)
