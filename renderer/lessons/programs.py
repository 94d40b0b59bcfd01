"""Runs the C$ programs of lessons: evaluate() for the steps that show one, bind_program() for timed launches.

A step's [steps.program] table in lesson.toml is a Program: a .cb file and the numbers that its main() takes.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from renderer.cdollar.checker.values import DataValue, FunctionValue
from renderer.cdollar.frontend.diagnostics import ProgramError
from renderer.cdollar.runtime.evaluate import build_main, evaluate_value, load_program, main_function, read_source
from renderer.cdollar.runtime.explain import explain
from renderer.cdollar.runtime.run_program import result_text
from renderer.cdollar.targets.device_target import DeviceTarget
from renderer.errors import InputError
from renderer.gpu import Device
from renderer.plain import Json, is_finite_number
from renderer.records import dataclass
from renderer.scene.schema import EMPTY, setting

MAX_NUMBERS = 4096  # in one value of `given`
MAX_LINES, MAX_CHARACTERS = 160, 20_000  # limits of an explanation's text; longer texts are cut


@dataclass(frozen=True)
class Program:
    """A program that a step shows with its result; `given` maps parameters of main() to numbers or nested lists."""

    file: str = setting("", file=(".cb",), help="the .cb file")
    given: Json = setting(EMPTY)
    explain: bool = setting(False, help="also the graph, the passes and the kernels")

    def __post_init__(self) -> None:
        if not self.file:
            raise ValueError("the key 'file' is missing")
        for name, value in self.given.items():
            numbers = _flat(value)
            if numbers is None:
                raise ValueError(f"given: {name} must be a number or lists of at most {MAX_NUMBERS} numbers")


def _flat(value: object, depth: int = 0) -> list[float] | None:
    """Returns all numbers of nested lists; None for other values, ragged lists and more than MAX_NUMBERS numbers."""
    if isinstance(value, (int, float)) and is_finite_number(value):
        return [value]
    if not isinstance(value, list) or not value or depth > 3:
        return None
    parts = [_flat(item, depth + 1) for item in value]
    if any(part is None for part in parts) or len({len(part or ()) for part in parts}) > 1:
        return None
    numbers = [number for part in parts for number in part or ()]
    return numbers if len(numbers) <= MAX_NUMBERS else None


@dataclass(frozen=True)
class ProgramResult:
    """The text of a program, its result as text, and its explanation, which is empty if the step asks for none."""

    source: str
    result: str
    explanation: str
    device: str


def evaluate(program: Program, device: Device) -> ProgramResult:
    """Compiles a program and evaluates its main() on a device; InputError, with the line, for a faulty program."""
    path = Path(program.file)
    try:
        compilation = load_program(path, lambda dag: DeviceTarget(dag, device, "device"))
        # explain() describes the kernels that the target adds to this list
        compilation.target.trace = [] if program.explain else None
        arrays = {name: np.array(value, "f4") for name, value in program.given.items() if isinstance(value, list)}
        numbers = {name: repr(value) for name, value in program.given.items() if not isinstance(value, list)}
        value = build_main(compilation, arrays, numbers)
        result = evaluate_value(compilation, value, main_function(compilation).declaration.name_span)
    except ProgramError as error:
        raise InputError(f"{path}: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise InputError(f"{path}: nested too deeply") from None
    text = ""
    if program.explain and isinstance(value, (DataValue, FunctionValue)):
        text = "\n".join(explain(compilation, [value.node]).splitlines()[:MAX_LINES])[:MAX_CHARACTERS]
    return ProgramResult(read_source(path).text, result_text(result, ""), text, device.name)


def bind_program(path: Path, device: Device, **arrays: np.ndarray) -> Callable[[], object]:
    """Compiles a program and uploads its `arrays`; returns a function that launches its kernels, without waiting."""
    compilation = load_program(path, lambda dag: DeviceTarget(dag, device, "device"))
    value = build_main(compilation, arrays, {})
    assert isinstance(value, FunctionValue) and isinstance(compilation.target, DeviceTarget), path
    return compilation.target.capture(value.node)[1]  # of (representation, launch)
