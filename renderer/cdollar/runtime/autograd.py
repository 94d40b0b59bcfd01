"""C$ functions inside PyTorch's autograd and JAX's transformations; each library is imported by its function alone."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from renderer.cdollar.runtime.array import Array
from renderer.cdollar.runtime.function import Function, vector_product, vjp


def _pullback(function: Function) -> Callable[[Sequence[int], Sequence[object]], Sequence[Array]]:
    """The derivatives by the parameters at some positions, for a vector and the arguments."""
    vector_product(function)  # an error of a wrong function comes before the first call
    made = functools.cache(lambda *names: vjp(function, *names))

    def derivatives(positions: Sequence[int], values: Sequence[object]) -> Sequence[Array]:
        found = made(*(function.names[k] for k in positions))(*values)
        return [found] if isinstance(found, Array) else found

    return derivatives


def torch_function(function: Function) -> Callable[..., Any]:
    """A C$ function of tensors for PyTorch's autograd: backward() takes its derivatives from vjp(), once.

    Arguments are those of the function; it returns a tensor. Raises ImportError without PyTorch.
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
            made = dict(zip(positions, pullback(positions, [vector.contiguous(), *values]), strict=True))
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

        def filled(given: Sequence[Any]) -> list[Any]:
            known = dict(zip(arrays, given, strict=False))
            return [np.asarray(known[k]) if k in known else value for k, value in enumerate(arranged)]

        def on_host(kind: np.dtype, *given: Any) -> np.ndarray:
            return np.asarray(function(*filled(given)), kind)

        def derivatives(positions: list[int], *given: Any) -> list[np.ndarray]:
            made = pullback(positions, [np.asarray(given[-1]), *filled(given)])
            return [np.asarray(d, given[arrays.index(k)].dtype) for k, d in zip(positions, made, strict=True)]

        @jax.custom_vjp  # type: ignore[untyped-decorator]
        def evaluated(*given: Any) -> Any:
            example = function(*filled([np.ones(value.shape, value.dtype) for value in given]))
            like = jax.ShapeDtypeStruct(example.shape, jax.dtypes.canonicalize_dtype(example.dtype))
            return jax.pure_callback(functools.partial(on_host, like.dtype), like, *given, vmap_method="sequential")

        def backward(given: tuple[Any, ...], vector: Any) -> tuple[Any, ...]:
            positions = [k for k, value in zip(arrays, given, strict=True) if value.dtype.kind == "f"]
            like = [jax.ShapeDtypeStruct(given[arrays.index(k)].shape, given[arrays.index(k)].dtype) for k in positions]
            made = jax.pure_callback(
                functools.partial(derivatives, positions), like, *given, vector, vmap_method="sequential"
            )
            by_position = dict(zip(positions, made, strict=True))
            none = jax.dtypes.float0
            return tuple(by_position.get(k, np.zeros(v.shape, none)) for k, v in zip(arrays, given, strict=True))

        evaluated.defvjp(lambda *given: (evaluated(*given), given), backward)
        return evaluated(*(arranged[k] for k in arrays))

    return call
