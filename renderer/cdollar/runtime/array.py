"""Results of C$ functions called from Python: arrays that stay on their device until the host reads them.

A call returns before its kernels have run. numpy(), indices and `__dlpack__` wait for them, and then raise the error of
a failed bounds check, which a kernel has reported as a number beside the result.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from renderer.cdollar.ir.types import Data, Number, Type, Vector, component_types, element_type
from renderer.cdollar.runtime.evaluate import pack_components
from renderer.cdollar.targets.device_target import STORAGE_DTYPES, DeviceTarget
from renderer.cdollar.targets.graph_target import PendingCheck, Representation
from renderer.errors import KernelError, UserError

HOST = (1, 0)  # DLPack's type of device, kDLCPU, and number of the device


class Results(tuple["Array | Results", ...]):
    """The results of a C$ function that returns a tuple: by position, and as attributes by their names."""

    names: tuple[str, ...]

    @classmethod
    def named(cls, names: Iterable[str], values: "Iterable[Array | Results]") -> "Results":
        """Results with a name for each."""
        results = cls(values)
        results.names = tuple(names)
        return results

    def __getattr__(self, name: str) -> "Array | Results":
        names: tuple[str, ...] = self.__dict__.get("names", ())
        if name in names:
            return self[names.index(name)]
        raise AttributeError(f"these results are {', '.join(names)}, not {name}")

    def __repr__(self) -> str:
        return f"Results({', '.join(f'{name}={value!r}' for name, value in zip(self.names, self, strict=True))})"


class Array:
    """The result of a C$ function, with `type`, and `shape` and `dtype` as in NumPy; a number has the shape ().

    `origin` holds the indices of its first element. `numpy()`, `float()` and indices read it, which waits for the
    device; `__dlpack__` gives it to PyTorch, CuPy and JAX without a copy where they use the same device. Given to
    another C$ function of the same device it is not copied either. It is never changed. `representation` has the
    buffers on the device, with their types and ranges (targets/graph_target.py).
    """

    def __init__(
        self,
        type_: Type,
        result: Data,
        origin: tuple[int, ...] = (),
        target: DeviceTarget | None = None,
        representation: Representation | None = None,
        checks: Sequence[PendingCheck] = (),
    ) -> None:
        """A result whose elements have the type `result`: on a device, or, without a representation, set later."""
        self.type, self.result, self.origin = type_, result, origin
        self.target, self.representation, self.checks = target, representation, checks
        self._host: np.ndarray | None = None

    @classmethod
    def of_host(cls, type_: Type, array: np.ndarray, origin: tuple[int, ...] = ()) -> "Array":
        """A result that is in the host's memory."""
        result = cls(type_, element_type(type_), origin)
        result._host = array
        return result

    def __reduce__(self) -> "tuple[Callable[..., Array], tuple[Type, np.ndarray, tuple[int, ...]]]":
        """Pickled as its elements in the host's memory."""
        return Array.of_host, (self.type, self.numpy(), self.origin)

    @property
    def shape(self) -> tuple[int, ...]:
        """The extent of each dimension; vectors have one more."""
        if self.representation is None:
            return self.numpy().shape
        return self.representation.shape + ((self.result.size,) if isinstance(self.result, Vector) else ())

    @property
    def dtype(self) -> np.dtype:
        """NumPy's type of the elements."""
        if self.representation is None:
            return self.numpy().dtype
        empty = [np.empty(0, STORAGE_DTYPES[t]) for t in component_types(self.result)]
        return pack_components(empty, self.result).dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def numpy(self) -> np.ndarray:
        """The result in the host's memory, read-only; waits for the device. Raises ProgramError of a failed check."""
        if self._host is None:
            assert self.target is not None and self.representation is not None
            self.check()
            self._host = pack_components(self.target.read_back(self.representation), self.result)
            self._host.flags.writeable = False
        return self._host

    def check(self) -> None:
        """Raise the error that a kernel reported: an index outside of a domain, a loop that was stopped."""
        if self.target is not None and self.checks:
            self.target.raise_failed_checks(self.checks)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.target.device.dlpack_device() if self.target is not None and self._is_plain else HOST

    def __dlpack__(self, *, stream: object = None, **options: object) -> object:
        if self.target is not None and self.representation is not None and self._is_plain:
            self.check()
            buffer, dtype = self.representation.buffers[0], STORAGE_DTYPES[self.representation.types[0]]
            # the capsule keeps the last argument, and so the buffer, alive
            capsule = self.target.device.export(buffer, dtype, self.representation.shape, self.representation)
            if capsule is not None:
                return capsule
        return np.array(self.numpy()).__dlpack__()

    @property
    def _is_plain(self) -> bool:
        """True if the elements are numbers of a type with the same bits on the device and the host."""
        types = self.representation.types if self.representation is not None else ()
        return len(types) == 1 and types[0] != "bool"

    def item(self) -> Number:
        """The only element as a Python number."""
        number: Number = self.numpy().item()
        return number

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __bool__(self) -> bool:
        return bool(self.numpy())

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a number has no length")
        return self.shape[0]

    def __getitem__(self, index: Any) -> Any:
        return self.numpy()[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.numpy())

    def __repr__(self) -> str:
        where = self.target.device_name if self.target is not None and self._host is None else "host"
        text = f"<{self.type} of shape {self.shape} on {where}"
        with suppress(KernelError, UserError):  # what a kernel reported is raised where the values are used
            return f"{text}: {np.array2string(self.numpy(), threshold=8)}>"
        return f"{text}>"
