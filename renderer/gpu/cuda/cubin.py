"""Reads the registers and stack bytes of the kernels in a cubin (an ELF file; section .nv.info)."""

import struct
from typing import NamedTuple

FRAME_SIZE, REGISTER_COUNT = 0x11, 0x2F  # EIATTR_FRAME_SIZE, EIATTR_REGCOUNT
SIZED_VALUE = 4  # format of an attribute whose value follows its size
SYMBOL_TABLE = 2  # section type SHT_SYMTAB
SYMBOL_BYTES = 24  # bytes of an Elf64_Sym


class KernelResources(NamedTuple):
    """Registers of a thread, and bytes of its stack, which holds spilled registers."""

    registers: int
    stack_bytes: int


def kernel_resources(cubin: bytes) -> dict[str, KernelResources]:
    """Reads the resources of each kernel in a cubin by name."""
    table, entry_bytes, count, names_at = _header(cubin)
    sections = [struct.unpack_from("<IIQQQQIIQQ", cubin, table + k * entry_bytes) for k in range(count)]
    strings = sections[names_at][4]
    symbols = next(section for section in sections if section[1] == SYMBOL_TABLE)
    info = next(section for section in sections if _name(cubin, strings + section[0]) == ".nv.info")
    found: dict[int, dict[int, int]] = {FRAME_SIZE: {}, REGISTER_COUNT: {}}
    at, end = info[4], info[4] + info[5]
    while at < end:
        form, attribute, size = struct.unpack_from("<BBH", cubin, at)
        at += 4
        if form == SIZED_VALUE:
            if attribute in found:
                symbol, value = struct.unpack_from("<II", cubin, at)
                found[attribute][symbol] = value
            at += size
    names = sections[symbols[6]][4]
    out = {}
    for symbol, held in found[REGISTER_COUNT].items():
        (offset,) = struct.unpack_from("<I", cubin, symbols[4] + symbol * SYMBOL_BYTES)
        out[_name(cubin, names + offset)] = KernelResources(held, found[FRAME_SIZE].get(symbol, 0))
    return out


def _header(cubin: bytes) -> tuple[int, int, int, int]:
    """Reads the ELF header: the section table's offset, entry size and entry count, and the name section's index."""
    (table,) = struct.unpack_from("<Q", cubin, 0x28)
    return table, *struct.unpack_from("<HHH", cubin, 0x3A)


def _name(cubin: bytes, at: int) -> str:
    return cubin[at : cubin.index(b"\0", at)].decode()
