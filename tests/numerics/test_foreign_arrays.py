"""Arrays of other libraries in and out of sums and products: in place, in any order of axes, and as their library's."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from renderer.errors import InputError, UnavailableError
from renderer.formats.npy import as_source
from renderer.gpu import array_interface
from renderer.gpu.dlpack import CUDA, dense_order
from renderer.numerics.sums import (
    array_sum,
    axis_mean,
    axis_sum,
    axis_variance,
    matmul,
    mean,
    minmax,
    norm,
    tensors,
    variance,
)
from tests.numerics.test_exact_lines import same, spread


class Library:
    """An array library with the array API's from_dlpack()."""

    __name__ = "library"

    def from_dlpack(self, source):
        return Own(np.from_dlpack(source))


class Own:
    """An array of that library."""

    def __init__(self, array):
        self.array, self.shape, self.ndim, self.dtype = array, array.shape, array.ndim, array.dtype

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __array_namespace__(self, api_version=None):
        return Library()


def test_results_are_arrays_of_the_library(device, rng):
    a, b = spread(rng, (9, 12), 50), spread(rng, (12, 5), 50)
    for where in (None, device):
        for function in (axis_sum, axis_mean, axis_variance):
            found = function(Own(a), 0, device=where)
            assert isinstance(found, Own) and same(found.array, function(a, 0))
            of_all = function(Own(a), None, device=where)
            assert isinstance(of_all, Own) and of_all.shape == () and float(of_all.array) == function(a.ravel())
        product = matmul(Own(a), Own(b), where)
        assert isinstance(product, Own) and same(product.array, matmul(a, b))
        dot = matmul(Own(a[0].copy()), Own(a[1].copy()), where)
        assert dot.shape == () and float(dot.array) == matmul(a[:1], a[1][:, None])[0, 0]
    assert type(axis_sum(a, None)) is np.float64 and axis_sum(a, None) == math.fsum(a.ravel())


def test_statistics_take_other_libraries_arrays(device, rng):
    numbers = rng.standard_normal((30, 7))
    for x in (Own(numbers), Own(numbers.T), Own(numbers[::2])):
        assert mean([device], x) == mean([device], x.array) and norm([device], x) == norm([device], x.array)
        assert variance([device], x, 1) == variance([device], x.array.copy(), 1)
        assert minmax([device], x) == (x.array.min(), x.array.max())


@pytest.mark.parametrize("order", [(1, 0), (2, 0, 1)])
def test_axes_in_any_order_are_read_in_place(device, rng, order):
    shape = (8, 16, 4)[: len(order)]
    memory = np.zeros(math.prod(shape) + 32)
    start = -memory.ctypes.data // 8 % 16
    dense = memory[start : start + math.prod(shape)].reshape(shape)
    dense[:] = spread(rng, shape, 100)
    given = dense.transpose(order)
    before = device.counters.uploads
    found = [axis_sum(Own(given), axis, device).array for axis in range(len(order))]
    assert device.counters.uploads == before or not device.properties.scalar_threads
    for axis, sums in enumerate(found):
        assert same(sums, axis_sum(given, axis))
    if len(order) == 2:
        assert same(matmul(Own(given), Own(dense), device).array, matmul(given, dense))
        assert same(matmul(Own(dense), Own(given), device).array, matmul(dense, given))


def test_host_arrays_in_any_layout_are_not_copied(device, rng, monkeypatch):
    """Fortran order and the other byte order: as_source() takes their memory as it is."""
    numbers = rng.standard_normal((30, 40))
    swapped, columns = numbers.astype(">f8"), np.asfortranarray(numbers)
    assert np.shares_memory(as_source(swapped).array, swapped)
    taken = []
    monkeypatch.setattr(
        "renderer.numerics.sums.device_sums.as_source", lambda v, *rest: taken.append(v) or as_source(v, *rest)
    )
    for x in (swapped, columns):
        assert array_sum([device], x).rounded() == math.fsum(numbers.ravel())
        assert np.shares_memory(taken[-1], x) and taken[-1].flags.c_contiguous
    assert array_sum([device], columns, y=numbers) == array_sum([device], numbers, y=numbers)
    assert array_sum([device], columns, y=columns) == array_sum([device], numbers, y=numbers)


def test_orders_of_memory():
    assert dense_order((2, 3), (3, 1), False) == ((2, 3), ())
    assert dense_order((2, 1, 3), (3, 77, 1), False) == ((2, 1, 3), ())
    assert dense_order((2, 3), (1, 2), True) == ((3, 2), (1, 0))
    assert dense_order((2, 3, 4), (4, 8, 1), True) == ((3, 2, 4), (1, 0, 2))
    assert dense_order((0, 3), (9, 9), False) == ((0, 3), ())
    for strides, any_order, words in (
        ((1, 2), False, "not in C order"),
        ((6, 2), True, "gaps"),
        ((0, 1), True, "gaps"),
    ):
        with pytest.raises(BufferError, match=words):
            dense_order((2, 3), strides, any_order)


def interface(**changed):
    facts = {"shape": (4, 3), "typestr": "<f8", "data": (4096, False), "version": 3, "strides": (24, 8)} | changed
    return SimpleNamespace(__cuda_array_interface__=facts)


def test_cuda_array_interface_is_read(device, monkeypatch):
    monkeypatch.setattr(array_interface, "_pointer_device", lambda pointer, stream: 1)
    found = array_interface.import_interface(interface(), True)
    assert found[:5] == (4096, CUDA, 1, np.float64, (4, 3)) and tensors.is_tensor(interface())
    turned = array_interface.import_interface(interface(strides=(8, 32)), True)
    assert (turned.shape, turned.axes) == ((3, 4), (1, 0))
    assert array_interface.import_interface(interface(strides=None)).shape == (4, 3)
    for changed, words in (
        ({"mask": 1}, "mask"),
        ({"strides": (24, 7)}, "strides"),
        ({"strides": (24,)}, r"its strides are \(24,\)"),
        ({"strides": (0, 0), "typestr": "|V0"}, "elements of 0 bytes"),
        ({"strides": (48, 8)}, "gaps"),
        ({"typestr": "nonsense"}, "damaged"),
        ({"data": None}, "damaged"),
    ):
        with pytest.raises(BufferError, match=words):
            array_interface.import_interface(interface(**changed), True)
    with pytest.raises(InputError, match="complex128; float16"):
        tensors.borrow_tensor(interface(typestr="<c16", strides=None), [])
    with pytest.raises(UnavailableError, match="on device 1 of DLPack type 2, which the host cannot read"):
        axis_sum(interface())
    assert array_sum([device], interface(shape=(0, 3), strides=None), "exact").rounded() == 0
    assert (
        array_interface.interface_facts(64, np.dtype("f8"), (2,))
        == interface(shape=(2,), data=(64, False), strides=None, stream=None).__cuda_array_interface__
    )


def test_a_library_without_float64_is_told(monkeypatch):
    monkeypatch.setattr(Library, "from_dlpack", lambda self, source: Own(np.from_dlpack(source).astype("f4")))
    with pytest.raises(UnavailableError, match="library made float32 of float64, which rounds again"):
        axis_sum(Own(np.ones((2, 3))))
