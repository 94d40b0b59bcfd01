"""The array language C$: frontend, checker, intermediate representation, targets and runtime.

    scaled = renderer.cdollar.function("float[] scaled(float[] x, float s) { var y(i) = s * x(i); return y; }")
    y = scaled(numpy.arange(5, dtype="f4"), 2.0)

`assets/guides/cdollar.md` has the language, `assets/guides/api.md` its use from Python.
"""

from typing import TYPE_CHECKING

from renderer.lazy import lazy_names

if TYPE_CHECKING:
    from renderer.cdollar.runtime.array import Array
    from renderer.cdollar.runtime.autograd import jax_function, torch_function
    from renderer.cdollar.runtime.decorator import function
    from renderer.cdollar.runtime.function import Function, grad, value_and_grad, vjp
    from renderer.cdollar.runtime.notebook import Shell

__all__ = ["Array", "Function", "function", "grad", "jax_function", "torch_function", "value_and_grad", "vjp"]
# The module of each name, which is imported at its first use.
_HOMES = dict.fromkeys(("Function", "grad", "value_and_grad", "vjp"), "runtime.function")
_HOMES |= dict.fromkeys(("jax_function", "torch_function"), "runtime.autograd")
_HOMES |= {"Array": "runtime.array", "function": "runtime.decorator"}

if not TYPE_CHECKING:  # else a misspelled name would be Any
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)


def load_ipython_extension(shell: "Shell") -> None:
    """The cell magic `%%cdollar`: `%load_ext renderer.cdollar`."""
    from renderer.cdollar.runtime.notebook import register_magic

    register_magic(shell)
