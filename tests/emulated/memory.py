"""Memory of emulated devices: full of garbage, between pages that nobody may touch."""

import ctypes
import mmap

import numpy as np

PAGE = mmap.PAGESIZE
ALIGNED = 16  # of the end: a vector that is not aligned, or lies across the end, is a fault
GARBAGE = (0xFF, 0x7F, 0xC5)  # not a number, huge, and neither
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
LIBC.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
NO_RESERVE = 0x4000
FAILED = ctypes.c_void_p(-1).value


class Memory:
    """`limit` bytes in pieces of their own mappings; a piece ends at a closed page, or begins at one."""

    def __init__(self, limit: int, rng: np.random.Generator):
        self.limit, self.used = limit, 0
        self._rng = rng
        self._pieces: dict[int, tuple[int, int, int]] = {}  # address: its mapping, the mapping's bytes, its own

    def take(self, count: int) -> int | None:
        """The address of `count` bytes, or None where they would be too many."""
        if self.used + count > self.limit:
            return None
        inner = -(-count // PAGE) * PAGE
        start = LIBC.mmap(None, inner + 2 * PAGE, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE, -1, 0)
        if start == FAILED:
            return None
        LIBC.mprotect(start + PAGE, inner, mmap.PROT_READ | mmap.PROT_WRITE)
        garbage = GARBAGE[self._rng.integers(len(GARBAGE))]
        ctypes.memset(start + PAGE, garbage, inner)
        slack = (inner - count) // ALIGNED * ALIGNED if self._rng.random() < 0.8 else 0
        address = start + PAGE + slack
        self._pieces[address] = start, inner + 2 * PAGE, count
        self.used += count
        return address

    def give(self, address: int) -> None:
        start, mapped, count = self._pieces.pop(address)
        LIBC.munmap(start, mapped)
        self.used -= count

    def holds(self, address: int, count: int) -> bool:
        """Whether `count` bytes lie in one piece."""
        return any(begin <= address and address + count <= begin + size for begin, (_, _, size) in self._pieces.items())

    def piece_at(self, address: int) -> str:
        """Where an address lies, for a person."""
        for begin, (start, mapped, count) in self._pieces.items():
            if start <= address < start + mapped:
                return f"byte {address - begin} of a buffer of {count}"
        return "in no buffer"
