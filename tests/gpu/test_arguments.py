"""Kernel arguments in memory, against ctypes."""

import ctypes

import numpy as np

from renderer.gpu.kernel_source import argument_layout


def test_kernel_arguments_lie_where_a_c_compiler_puts_them(rng):
    scalars = {np.dtype(code): np.ctypeslib.as_ctypes_type(code) for code in ("i1", "u2", "f4", "f8", "u8")}
    c_types = {int: ctypes.c_int, float: ctypes.c_float, bytes: ctypes.c_void_p} | scalars
    for count in range(9):
        kinds = [list(c_types)[k] for k in rng.integers(0, len(c_types), count)]
        values = rng.integers(1, 99, count).tolist()
        fields = [(f"a{k}", c_types[kind]) for k, kind in enumerate(kinds)]
        wanted = type("Arguments", (ctypes.Structure,), {"_fields_": fields})(*values)
        packed = [
            kind.type(v).tobytes() if isinstance(kind, np.dtype) else v for kind, v in zip(kinds, values, strict=True)
        ]
        found = argument_layout(tuple(kinds)).pack(*packed)
        assert found == bytes(wanted)[: len(found)] and len(bytes(wanted)) - len(found) < 8
