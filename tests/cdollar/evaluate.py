"""Runs C$ programs from text with NumPy arrays, for the tests."""

import re

from renderer.cdollar.frontend.diagnostics import ProgramError, ProgramWarning, SourceFile
from renderer.cdollar.runtime.evaluate import build_main, evaluate_value, load_text, main_function
from renderer.cdollar.targets.numpy.target import NumpyTarget


def result_of(text, make_target=NumpyTarget, numbers=None, folder=None, **arrays):
    """The Result of a program's main with parameters filled by arrays and by texts of numbers."""
    compilation = load_text(SourceFile("test.cb", text), make_target, folder)
    return evaluate_value(
        compilation, build_main(compilation, arrays, numbers or {}), main_function(compilation).declaration.name_span
    )


def value_of(text, make_target=NumpyTarget, numbers=None, folder=None, **arrays):
    """The result as a NumPy array."""
    return result_of(text, make_target, numbers, folder, **arrays).array


def warnings_of(text, **arrays) -> list[ProgramWarning]:
    """The warnings of a program that runs."""
    compilation = load_text(SourceFile("test.cb", text), NumpyTarget)
    evaluate_value(compilation, build_main(compilation, arrays, {}), main_function(compilation).declaration.name_span)
    return list(compilation.dag.warnings.values())


def error_of(text, numbers=None, **arrays) -> ProgramError:
    """The error a program ends with."""
    try:
        result = value_of(text, numbers=numbers, **arrays)
    except ProgramError as error:
        return error
    raise AssertionError(f"the program runs and yields {result}")


def codes_of(text: str) -> list[str]:
    return re.findall(r"CS\d{4}", text)
