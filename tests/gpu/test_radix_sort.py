"""The radix sort against NumPy, as CPUs and as GPUs without ballots do it: sizes around the borders of tiles.

tests/cdollar/test_radix_sort.py runs Onesweep on the emulated CUDA machine.
"""

import numpy as np
import pytest

from renderer.gpu.radix_sort import GROUP_SIZE, ITEMS, RadixSort
from tests.cdollar.test_schedules import AsGpu

TILE = GROUP_SIZE * ITEMS
COUNTS = [1, ITEMS, ITEMS + 1, TILE - 1, TILE, TILE + 1, 3 * TILE, 5 * TILE - 77]
AS_NUMPY = {"float": "f4", "int": "i4", "uint": "u4"}


@pytest.fixture(params=["as it is", "as a GPU"])
def sorter(request, device):
    return device if request.param == "as it is" else AsGpu(device)


def upload(device, array):
    return device.buffer(array.shape, array.dtype).write(array)


def random_elements(rng, count, scalar):
    """Elements with equal ones far apart, in all four bytes."""
    words = rng.choice(rng.integers(0, 1 << 32, max(1, count // 3), "u4"), count)
    if scalar != "float":
        return words.view(AS_NUMPY[scalar])
    words[::5], words[::7] = 0, 0x80000000  # 0 and -0 are equal
    return np.where((words >> 23) & 255 == 255, np.uint32(0xFF800000), words).view("f4")  # no NaN of many bits


@pytest.mark.parametrize(
    ("scalar", "count"),
    [
        pytest.param(scalar, count, marks=[] if scalar == "uint" or count in COUNTS[-1:] else pytest.mark.slow)
        for scalar in AS_NUMPY
        for count in COUNTS  # whose borders do not depend on the elements
    ],
)
def test_elements_indices_and_values_are_sorted_stably(sorter, rng, count, scalar):
    elements, values = random_elements(rng, count, scalar), rng.integers(0, 1 << 32, count, "u4")
    order = np.argsort(elements, kind="stable")
    source, out, numbers = upload(sorter, elements), sorter.buffer(count, elements.dtype), sorter.buffer(count, "u4")
    RadixSort(sorter, count, "elements", scalar)(source, elements_out=out)
    assert np.array_equal(out.read(), elements[order])
    RadixSort(sorter, count, "indices", scalar)(source, values_out=numbers)
    assert np.array_equal(numbers.read(), order)
    if scalar != "float":  # which puts the values of -0 before those of 0
        RadixSort(sorter, count, "values", scalar)(source, upload(sorter, values), values_out=numbers)
        assert np.array_equal(numbers.read(), values[order])


@pytest.mark.parametrize("bits", [1, 4, 7, 8, 9, 17, 30])
def test_keys_of_few_bits_take_few_passes(sorter, rng, bits):
    keys = rng.integers(0, 1 << bits, 2 * TILE + 5, "u4")
    indices = sorter.buffer(len(keys), "u4")
    RadixSort(sorter, len(keys), "indices", bits=bits)(upload(sorter, keys), values_out=indices)
    assert np.array_equal(indices.read(), np.argsort(keys, kind="stable"))


def test_elements_are_sorted_in_place_beside_their_indices_again_and_again(sorter, rng):
    count = 3 * TILE - 1
    sort, indices = RadixSort(sorter, count, "elements and indices"), sorter.buffer(count, "u4")
    for _ in range(2):
        keys = random_elements(rng, count, "uint")
        buffer = upload(sorter, keys)
        sort(buffer, elements_out=buffer, values_out=indices)
        order = np.argsort(keys, kind="stable")
        assert np.array_equal(indices.read(), order) and np.array_equal(buffer.read(), keys[order])
    with pytest.raises(AssertionError, match="overwrite"):
        RadixSort(sorter, count, "elements and indices", bits=4)(buffer, elements_out=buffer, values_out=indices)
