"""Runs a program's main on a target and prints or writes its result, for `rayfold run PROGRAM.cb`.

run_program() takes the words of the command line and returns the exit code: it loads the program, binds the parameters
of main, evaluates it (evaluate.py), and writes the result as text, JSON, .npy, .npz, .csv, .png or .exr.
"""

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from renderer.cdollar.checker.target import Target
from renderer.cdollar.checker.values import DataValue, FunctionValue, TupleValue, Value
from renderer.cdollar.frontend.diagnostics import ProgramError
from renderer.cdollar.ir.dag import Node
from renderer.cdollar.ir.types import element_type
from renderer.cdollar.runtime.evaluate import Result, build_main, evaluate_value, load_program, main_function
from renderer.cdollar.runtime.parameters import parse_assignments
from renderer.cdollar.runtime.pictures import write_picture
from renderer.cdollar.targets.open_target import schedule_file, target_factory
from renderer.errors import UserError
from renderer.formats.npy import write_arrays
from renderer.formats.tables import table_text
from renderer.plain import Json
from renderer.system.outputs import check_output, check_suffix, write_text
from renderer.system.progress import Progress

if TYPE_CHECKING:
    from renderer.cdollar.runtime.costs import Ceilings

OUTPUT_SUFFIXES = (".npy", ".npz", ".png", ".exr", ".csv")
MAX_JSON_VALUES = 4096  # elements above which --json leaves out an array's values
JsonValue = Any  # a number, a text, None, a list or a dict


def run_program(
    program: Path,
    inputs: Sequence[str] = (),
    numbers: Sequence[str] = (),
    target: str | None = None,
    output: str | None = None,
    *,
    strict: bool = False,
    tune: bool = False,
    explained: bool = False,
    as_json: bool = False,
    drawn: str | None = None,
) -> int:
    """Run a program; returns the exit code.

    `inputs` are texts NAME=FILE, `numbers` texts NAME=VALUE, `output` the file of the result and `drawn` the .svg file
    of the graph. Raises UserError, or ProgramError with the source location.
    """
    for option, file, suffixes in (("-o", output, OUTPUT_SUFFIXES), ("--graph", drawn, (".svg",))):
        if file:
            check_suffix(option, file, *suffixes)
            check_output(file)
    make_target = target_factory(target, program, strict)
    started = time.perf_counter()
    files, values = parse_assignments(inputs, "--in"), parse_assignments(numbers, "--set")
    compilation = load_program(program, make_target)
    span = main_function(compilation).declaration.name_span
    compilation.target.trace = [] if explained or tune or drawn else None
    compilation.target.launch_seconds = [] if explained or drawn else None
    # 0 steps: how many there will be is not known; the host's loops advance the bar
    with Progress(0, f"{program.name}, rounds of its loops") as compilation.program.host.progress:
        value = build_main(compilation, files, values)
    with Progress(0, f"{program.name}, its result"):
        result = evaluate_value(compilation, value, span)
    seconds = time.perf_counter() - started
    for warning in compilation.dag.warnings.values():
        print(warning, file=sys.stderr)
    if tune:
        from renderer.cdollar.targets.autotuner import write_schedule

        write_schedule(compilation.target, schedule_file(program))
    if output:
        if result.array is None and not result.items:
            raise ProgramError("CS0306", span, f"the result is a {result.type}, which no file holds")
        write_result(Path(output), result)
    if explained or drawn:
        from renderer.cdollar.runtime.costs import measure_ceilings
        from renderer.cdollar.runtime.explain import explain
        from renderer.cdollar.targets.device_target import DeviceTarget

        used, roots = compilation.target, roots_of(value)
        ceilings = measure_ceilings(used.device) if isinstance(used, DeviceTarget) else None
        if explained:
            print(explain(compilation, roots, ceilings), file=sys.stderr if as_json else sys.stdout)
        if drawn:
            write_graph(Path(drawn), used, roots, program.name, ceilings)
    if as_json:
        target_facts = {"target": compilation.target.name, "device": compilation.target.device_name}
        facts = result_facts(result, with_value=not output) | target_facts
        print(json.dumps(facts | {"seconds": round(seconds, 6), "output": output}))
    else:
        print(result_text(result, output))
    return 0


def roots_of(value: Value) -> list[Node]:
    """The nodes of a result, and of the values of a tuple."""
    if isinstance(value, TupleValue):
        return [node for item in value.fields for node in roots_of(item)]
    return [value.node] if isinstance(value, DataValue | FunctionValue) else []


def write_graph(path: Path, target: Target, roots: list[Node], title: str, ceilings: "Ceilings | None") -> None:
    """Draw the graph of a run: after the passes, if the target has some."""
    from renderer.cdollar.runtime.costs import kernel_costs
    from renderer.cdollar.runtime.graph import layered_graph, svg

    # The last graphs are the result's; the ones before computed numbers that main needed.
    passed = [node for kind, node, _ in target.trace or [] if kind == "passes"]
    text = svg(layered_graph(passed[-len(roots) :] or roots, kernel_costs(target)), title, ceilings)
    write_text(path, text, is_sealed=True)


def write_result(path: Path, result: Result) -> None:
    """Write a result by the suffix of its file; if anything fails, an old file stays as it was. Raises UserError."""
    suffix = path.suffix.lower()
    if bool(result.items) != (suffix == ".npz"):
        wanted = "the values of a tuple go to a .npz file" if result.items else ".npz holds the values of a tuple"
        raise UserError(f"-o {path}: the result is {result.type}; {wanted}")
    arrays = {name: item.array for name, item in result.items.items() if item.array is not None}
    if len(arrays) < len(result.items):
        raise UserError(f"-o {path}: the result is {result.type}; domains and tuples in tuples go to no file")
    if suffix == ".npz":
        write_arrays(path, arrays)
        return
    assert result.array is not None
    if suffix in (".png", ".exr"):
        write_picture(path, result.array, element_type(result.type))
    elif suffix == ".npy":
        write_arrays(path, np.ascontiguousarray(result.array))
    elif result.array.ndim > 2 or result.array.dtype.names and result.array.ndim > 1:
        shape = " x ".join(map(str, result.array.shape))
        raise UserError(f"-o {path}: the result is {shape} of {result.type}; a table has one or two dimensions")
    else:
        write_text(path, table_text(result.array))


def result_text(result: Result, output: str | None) -> str:
    """The result as text for the terminal, or a line about the file `output`."""
    if result.items and output:
        return f"{output}: {result.type}, {', '.join(result.items)}"
    if result.array is None:
        return result.text or "\n".join(f"{name} =\n{result_text(item, None)}" for name, item in result.items.items())
    origin = f"first index {', '.join(map(str, result.origin))}" if any(result.origin) else ""
    if output:
        shape = " x ".join(map(str, result.array.shape)) or "one number"
        return f"{output}: {result.type}, {shape}, {result.array.dtype}{', ' + origin if origin else ''}"
    if result.array.ndim == 0:
        return str(result.array[()])
    return (origin + "\n" if origin else "") + np.array2string(result.array, threshold=1000, max_line_width=120)


def result_facts(result: Result, with_value: bool) -> Json:
    """The JSON object of a result; large arrays without their values."""
    array = result.array
    value: JsonValue = result.text or None
    if result.items:
        value = {name: result_facts(item, with_value) for name, item in result.items.items()}
    if array is not None and array.size <= MAX_JSON_VALUES and with_value:
        value = json_value(array)
    return {
        "type": str(result.type),
        "shape": list(array.shape) if array is not None else None,
        "dtype": str(array.dtype) if array is not None else None,
        "origin": list(result.origin),
        "value": value,
    }


def json_value(array: np.ndarray) -> JsonValue:
    """An array as a JSON value: NaN and infinities become strings, records objects."""
    if array.ndim:
        return [json_value(row) for row in array]
    if array.dtype.names:
        return {name: json_value(np.asarray(array[name])) for name in array.dtype.names}
    number = array.item()
    return number if not isinstance(number, float) or np.isfinite(number) else str(number)
