"""The array language C$: frontend, checker, intermediate representation, targets and runtime.

    scaled = renderer.cdollar.function("float[] scaled(float[] x, float s) { var y(i) = s * x(i); return y; }")
    y = scaled(numpy.arange(5, dtype="f4"), 2.0)

`assets/guides/cdollar.md` has the language, `assets/guides/api.md` its use from Python.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from renderer.cdollar.runtime.array import Array
    from renderer.cdollar.runtime.decorator import function
    from renderer.cdollar.runtime.function import Function, grad

__all__ = ["Array", "Function", "function", "grad"]
_HOMES = {"Array": "array", "Function": "function", "function": "decorator", "grad": "function"}


def __dir__() -> list[str]:
    return sorted([*__all__, "__all__", "__doc__", "__file__", "__name__", "__path__"])


if not TYPE_CHECKING:  # else a misspelled name would be Any

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module 'renderer.cdollar' has no attribute {name!r}")
        return getattr(import_module(f"renderer.cdollar.runtime.{_HOMES[name]}"), name)


def load_ipython_extension(shell: Any) -> None:
    """The cell magic `%%cdollar`: `%load_ext renderer.cdollar`."""
    import_module("renderer.cdollar.runtime.notebook").load_ipython_extension(shell)
