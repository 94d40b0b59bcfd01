"""Reads the registers and stack bytes of the kernels in a cubin, an ELF file, from its section .nv.info.

Sources: elf(5) for headers, sections and symbols; the attributes of .nv.info are those that cuobjdump shows.
"""

import struct
from collections import namedtuple
from typing import NamedTuple

FRAME_SIZE, REGISTER_COUNT = 0x11, 0x2F  # EIATTR_FRAME_SIZE, EIATTR_REGCOUNT
SIZED_VALUE = 4  # format of an attribute whose value follows its size
SYMBOL_TABLE = 2  # section type SHT_SYMTAB
SYMBOL_BYTES = 24  # bytes of an Elf64_Sym
# An Elf64_Shdr: `name` is an offset in the section of names, `link` the number of the section of a table's strings.
Section = namedtuple("Section", "name type flags address offset size link info alignment entry_bytes")


class KernelResources(NamedTuple):
    """Registers of a thread, and bytes of its stack, which holds spilled registers."""

    registers: int
    stack_bytes: int


def kernel_resources(cubin: bytes) -> dict[str, KernelResources]:
    """Reads the resources of each kernel in a cubin by name."""
    table, entry_bytes, count, names_at = _header(cubin)
    rows = (struct.unpack_from("<IIQQQQIIQQ", cubin, table + k * entry_bytes) for k in range(count))
    sections = [Section(*row) for row in rows]
    section_names = sections[names_at].offset
    symbols = next(section for section in sections if section.type == SYMBOL_TABLE)
    info = next(section for section in sections if _name(cubin, section_names + section.name) == ".nv.info")
    values: dict[int, dict[int, int]] = {FRAME_SIZE: {}, REGISTER_COUNT: {}}  # by attribute and symbol number
    at, end = info.offset, info.offset + info.size
    while at < end:
        form, attribute, size = struct.unpack_from("<BBH", cubin, at)
        at += 4
        if form == SIZED_VALUE:
            if attribute in values:
                symbol, value = struct.unpack_from("<II", cubin, at)
                values[attribute][symbol] = value
            at += size  # attributes of other formats have their value in place of the size
    symbol_names = sections[symbols.link].offset
    out = {}
    for symbol, registers in values[REGISTER_COUNT].items():
        (name,) = struct.unpack_from("<I", cubin, symbols.offset + symbol * SYMBOL_BYTES)
        out[_name(cubin, symbol_names + name)] = KernelResources(registers, values[FRAME_SIZE].get(symbol, 0))
    return out


def _header(cubin: bytes) -> tuple[int, int, int, int]:
    """Reads the ELF header: the section table's offset, entry size and entry count, and the name section's index."""
    (table,) = struct.unpack_from("<Q", cubin, 0x28)
    return table, *struct.unpack_from("<HHH", cubin, 0x3A)


def _name(cubin: bytes, at: int) -> str:
    return cubin[at : cubin.index(b"\0", at)].decode()
