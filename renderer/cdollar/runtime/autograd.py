"""C$ functions inside PyTorch's autograd and JAX's transformations; each library is imported by its function alone."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from renderer.cdollar.runtime.array import Array
from renderer.cdollar.runtime.function import Function, vector_product, vjp


def _pullback(function: Function) -> Callable[[Sequence[int], Sequence[object]], dict[int, Array]]:
    """A function of positions of parameters, a vector and the arguments: the derivatives by position."""
    vector_product(function)  # an error of a wrong function comes before the first call
    made = functools.cache(lambda *names: vjp(function, *names))

    def derivatives(positions: Sequence[int], values: Sequence[object]) -> dict[int, Array]:
        found = made(*(function.names[k] for k in positions))(*values)
        return dict(zip(positions, [found] if isinstance(found, Array) else found, strict=True))

    return derivatives


def torch_function(function: Function) -> Callable[..., Any]:
    """A C$ function of tensors for PyTorch's autograd: backward() takes its derivatives from vjp(), once.

    It takes the arguments of `function` and returns a tensor. Raises ImportError without PyTorch.
    """
    import torch

    pullback = _pullback(function)

    class Call(torch.autograd.Function):  # type: ignore[misc]  # PyTorch may be missing
        @staticmethod
        def forward(ctx: Any, *values: Any) -> Any:
            ctx.save_for_backward(*(value for value in values if isinstance(value, torch.Tensor)))
            ctx.others = [torch if isinstance(value, torch.Tensor) else value for value in values]  # torch: a tensor
            return torch.from_dlpack(function(*(v.detach() if isinstance(v, torch.Tensor) else v for v in values)))

        @staticmethod
        @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]
        def backward(ctx: Any, vector: Any) -> Any:
            saved = iter(ctx.saved_tensors)
            values = [next(saved).detach() if value is torch else value for value in ctx.others]
            positions = [k for k, needed in enumerate(ctx.needs_input_grad) if needed]
            made = pullback(positions, [vector.contiguous(), *values])
            return tuple(torch.from_dlpack(made[k]) if k in made else None for k in range(len(values)))

    return lambda *values, **named: Call.apply(*function.arranged(values, named))


def jax_function(function: Function) -> Callable[..., Any]:
    """A C$ function of arrays for JAX, inside jit, grad and vmap: a callback with the derivatives of vjp().

    Python's numbers are constants of the trace. The result's shape, which a trace needs, is found by a call with
    arrays of ones, so it must not depend on their values. Raises ImportError without JAX.
    """
    import jax

    pullback = _pullback(function)

    def call(*values: Any, **named: Any) -> Any:
        arranged = function.arranged(values, named)
        arrays = [k for k, value in enumerate(arranged) if isinstance(value, (jax.Array, np.ndarray))]
        floats = [k for k in arrays if arranged[k].dtype.kind == "f"]

        def filled(given: Sequence[Any]) -> list[Any]:
            known = dict(zip(arrays, map(np.asarray, given), strict=False))
            return [known.get(k, value) for k, value in enumerate(arranged)]

        def on_host(compute: Callable[..., Any], like: Any, *given: Any) -> Any:
            def typed(*arguments: Any) -> Any:
                return jax.tree.map(lambda wanted, made: np.asarray(made, wanted.dtype), like, compute(*arguments))

            return jax.pure_callback(typed, like, *given, vmap_method="sequential")

        @jax.custom_vjp  # type: ignore[untyped-decorator]
        def evaluated(*given: Any) -> Any:
            example = function(*filled([np.ones(value.shape, value.dtype) for value in given]))
            like = jax.ShapeDtypeStruct(example.shape, jax.dtypes.canonicalize_dtype(example.dtype))
            return on_host(lambda *each: function(*filled(each)), like, *given)

        def backward(given: tuple[Any, ...], vector: Any) -> tuple[Any, ...]:
            none = {k: np.zeros(v.shape, jax.dtypes.float0) for k, v in zip(arrays, given, strict=True)}
            like = {
                k: jax.ShapeDtypeStruct(v.shape, v.dtype) for k, v in zip(arrays, given, strict=True) if k in floats
            }
            made = on_host(lambda *each: pullback(floats, [np.asarray(each[-1]), *filled(each)]), like, *given, vector)
            return tuple((none | made).values())

        evaluated.defvjp(lambda *given: (evaluated(*given), given), backward)
        return evaluated(*(arranged[k] for k in arrays))

    return call
