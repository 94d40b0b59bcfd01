"""C$ functions inside PyTorch's autograd and JAX's transformations, by vjp() of function.py.

Each library is imported only when its function is called.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from renderer.cdollar.runtime.array import Array
from renderer.cdollar.runtime.function import Function, vector_product, vjp
from renderer.errors import import_optional
from renderer.system.install import pip_install


def _pullback(function: Function) -> Callable[[Sequence[int], Sequence[object]], dict[int, Array]]:
    """Returns pullback(positions, (vector, *arguments)): the derivative by the parameter at each position.

    The vector has the shape of the result; a derivative is its product with the Jacobian.
    """
    vector_product(function)  # raises before the first call if the function has no such derivative
    made = functools.cache(lambda *names: vjp(function, *names))

    def pullback(positions: Sequence[int], values: Sequence[object]) -> dict[int, Array]:
        found: Any = made(*(function.names[k] for k in positions))(*values)  # Results if there are several
        return dict(zip(positions, [found] if isinstance(found, Array) else found, strict=True))

    return pullback


def torch_function(function: Function) -> Callable[..., object]:
    """A C$ function of tensors for PyTorch's autograd: backward() takes its derivatives from vjp().

    It takes the arguments of `function` and returns a tensor. The derivatives have no derivatives themselves. Raises
    UnavailableError without PyTorch.
    """
    torch = import_optional("torch", f"torch_function needs PyTorch: {pip_install('torch')}")

    pullback = _pullback(function)

    class Call(torch.autograd.Function):  # type: ignore[misc, name-defined]  # PyTorch may be missing
        """PyTorch's function: keeps the arguments of a call, and calls `pullback` for their derivatives."""

        @staticmethod
        def forward(ctx: Any, *values: object) -> object:
            ctx.save_for_backward(*(value for value in values if isinstance(value, torch.Tensor)))
            # `torch` in place of a tensor marks the next saved tensor.
            ctx.others = [torch if isinstance(value, torch.Tensor) else value for value in values]
            return torch.from_dlpack(function(*(v.detach() if isinstance(v, torch.Tensor) else v for v in values)))

        @staticmethod
        @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]
        def backward(ctx: Any, vector: Any) -> tuple[object, ...]:
            saved = iter(ctx.saved_tensors)
            values = [next(saved).detach() if value is torch else value for value in ctx.others]
            positions = [k for k, needed in enumerate(ctx.needs_input_grad) if needed]
            made = pullback(positions, [vector.contiguous(), *values])
            return tuple(torch.from_dlpack(made[k]) if k in made else None for k in range(len(values)))

    return lambda *values, **named: Call.apply(*function.arranged(values, named))


def jax_function(function: Function) -> Callable[..., object]:
    """A C$ function of arrays for JAX, inside jit, grad and vmap: a callback with the derivatives of vjp().

    Python's numbers are constants of the trace. A trace needs the result's shape: a call with arrays of ones gives it,
    so it must not depend on the arrays' values. Raises UnavailableError without JAX.
    """
    jax = import_optional("jax", f"jax_function needs JAX: {pip_install('jax')}")

    pullback = _pullback(function)

    def call(*values: object, **named: object) -> object:
        """Calls the function on arguments that JAX may trace, by a callback on the host."""
        arranged: list[Any] = function.arranged(values, named)
        arrays = [k for k, value in enumerate(arranged) if isinstance(value, (jax.Array, np.ndarray))]
        floats = [k for k in arrays if arranged[k].dtype.kind == "f"]

        def filled(given: Sequence[object]) -> list[object]:
            """All arguments, with the traced arrays `given` in their positions."""
            known = dict(zip(arrays, map(np.asarray, given), strict=True))
            return [known.get(k, value) for k, value in enumerate(arranged)]

        def on_host(compute: Callable[..., object], like: object, *given: object) -> object:
            """JAX's callback of compute(*given), whose result has the shapes and types of `like`."""

            def typed(*arguments: object) -> object:
                return jax.tree.map(lambda wanted, made: np.asarray(made, wanted.dtype), like, compute(*arguments))

            return jax.pure_callback(typed, like, *given, vmap_method="sequential")

        @jax.custom_vjp  # type: ignore[untyped-decorator]
        def evaluated(*given: Any) -> Any:
            example = function(*filled([np.ones(value.shape, value.dtype) for value in given]))
            like = jax.ShapeDtypeStruct(example.shape, jax.dtypes.canonicalize_dtype(example.dtype))
            return on_host(lambda *each: function(*filled(each)), like, *given)

        def backward(given: tuple[Any, ...], vector: Any) -> tuple[Any, ...]:
            # JAX wants a derivative by every array: by one of integers it is of the type float0.
            zeros = {k: np.zeros(v.shape, jax.dtypes.float0) for k, v in zip(arrays, given, strict=True)}
            like = {
                k: jax.ShapeDtypeStruct(v.shape, v.dtype) for k, v in zip(arrays, given, strict=True) if k in floats
            }
            made: Any = on_host(
                lambda *each: pullback(floats, [np.asarray(each[-1]), *filled(each[:-1])]), like, *given, vector
            )  # each: the arrays, then the vector
            return tuple((zeros | made).values())

        evaluated.defvjp(lambda *given: (evaluated(*given), given), backward)
        return evaluated(*(arranged[k] for k in arrays))

    return call
