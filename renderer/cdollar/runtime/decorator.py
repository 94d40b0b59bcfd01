"""C$ from Python: `@renderer.cdollar.function` on a text or a docstring makes a Python function of a C$ function.

function.py has the class of these functions; this module starts the GPU's driver before it imports that one.
"""

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, overload

from renderer.cdollar.frontend.diagnostics import ArgumentError, ProgramError
from renderer.gpu.cuda.ahead import start_driver
from renderer.plain import format_value

if TYPE_CHECKING:
    from renderer.cdollar.runtime.function import Function

_start_driver = functools.cache(start_driver)  # once in a process; it does nothing without a GPU
Decorated = Callable[..., object]  # a Python function whose docstring is a C$ program


@overload
def function(
    source: None = None, *, target: str | None = None, strict: bool = False, name: str = ""
) -> "Callable[[Decorated], Function]": ...


@overload
def function(
    source: str | Decorated, *, target: str | None = None, strict: bool = False, name: str = ""
) -> "Function": ...


def function(
    source: str | Decorated | None = None, *, target: str | None = None, strict: bool = False, name: str = ""
) -> "Function | Callable[[Decorated], Function]":
    """A Python function of a C$ program: a text, or the docstring of the function that is decorated.

    The C$ function is `main`, or the one with the Python function's `name`, or the only one. `target` is "numpy",
    "opencl", "cuda" or "glsl" (default: the best GPU, or NumPy); `strict` gives the same bits on all of them. Arguments
    are numbers, NumPy arrays, objects with `__dlpack__`, and results of such functions; a call returns an Array.
    Raises ProgramError for an error in the program, ArgumentError or InputError for an argument that does not fit.
    """
    if not isinstance(name, str):
        raise ArgumentError(f"cdollar.function: name is a text, but {format_value(name)} is given")
    if source is None:
        return lambda decorated: function(decorated, target=target, strict=strict, name=name)
    if isinstance(source, str):
        text = source
    elif callable(source) and source.__doc__:
        text, name = inspect.cleandoc(source.__doc__), name or source.__name__
    else:
        raise ArgumentError("cdollar.function: needs a C$ program, as a text or as the docstring of a function")
    if target is None or isinstance(target, str) and target == "cuda":
        _start_driver(0)  # of the first GPU
    from renderer.cdollar.runtime.function import Function  # imports while the driver starts: both take as long

    try:
        made = Function(text, target, strict, name)
    except ProgramError as error:  # the compiler's frames say nothing about the program
        raise error.with_traceback(None) from None
    if not isinstance(source, str):
        functools.update_wrapper(made, source)
    return made
