"""Builds kernel and shader texts: expands #include with correct line numbers, adds constants, structs of dtypes.

preprocess() takes a file of shaders/ or a GeneratedSource, and constants from Python; it returns one text without
#include, which every compiler takes. Its #line lines make compilers report errors by file and line of the source.
"""

import re
import struct
from collections.abc import Callable
from functools import cache, lru_cache

import numpy as np

from renderer.errors import KernelError
from renderer.paths import SHADERS
from renderer.records import dataclass
from renderer.system import drafts

INCLUDE = re.compile(r'^[ \t]*#(include|include_again)[ \t]+"([^"]+)"[ \t]*$')
CONDITION = re.compile(r"^[ \t]*#[ \t]*(if|el|endif)")  # `el` begins #else and #elif, `if` also #ifdef and #ifndef
SCALARS = {"f4": "float", "f8": "double", "f2": "half", "i1": "char", "u1": "uchar", "i2": "short", "u2": "ushort",
           "i4": "int", "u4": "uint", "i8": "long", "u8": "ulong"}  # fmt: skip
VECTORS = (2, 4)  # elements of a field that C declares as a vector, such as float4
ARGUMENTS = {int: (4, 4, "i"), float: (4, 4, "f"), bytes: (8, 8, "Q")}  # alignment, bytes, code of `struct`


@dataclass(frozen=True)
class GeneratedSource:
    """A kernel text generated at run time; error messages show `name` in place of a file name."""

    name: str
    text: str


Branch = tuple[str, ...]  # the #if, #elif and #else around a line, as FILE:LINE, the outermost first
_source_cache: dict[str, tuple[str, ...]] = {}  # lines of the files under shaders/ that were read, by name


def _lines(name: str) -> tuple[str, ...]:
    if name not in _source_cache:
        path = (SHADERS / name).resolve()
        if not path.is_relative_to(SHADERS) or not path.is_file():
            raise KernelError(f"shaders/{name}: no such file")
        # an edited text that is not saved yet, or the user's copy of the file
        text = drafts.text_of(path) or drafts.file_of(path).read_text(encoding="utf-8")
        _source_cache[name] = tuple(text.splitlines())
    return _source_cache[name]


def clear_source_cache() -> dict[str, tuple[str, ...]]:
    """Empties the cache, so that edited files are read again; returns its content for restore_source_cache()."""
    texts = dict(_source_cache)
    _source_cache.clear()
    return texts


def restore_source_cache(texts: dict[str, tuple[str, ...]]) -> None:
    """Restores the content that clear_source_cache() returned, after edited files failed to compile."""
    _source_cache.clear()
    _source_cache.update(texts)


@lru_cache(maxsize=256)
def _pieces(lines: tuple[str, ...]) -> tuple[tuple[list[str], str, bool, int, Branch], ...]:
    """Splits a file at its #include lines.

    Each piece: the text in front of the #include (a list of at most one string), the included file, True for
    #include_again, the number of the next line, and the lines of the #if, #elif or #else that the #include is in. The
    last piece is the rest of the file. The result is cached, since programs share most of their files.
    """
    branch: list[str] = []
    pieces, begin = [], 0

    def text(end: int) -> list[str]:
        return ["\n".join(lines[begin:end])] if begin < end else []

    for number, line in enumerate(lines, 1):
        if "#" not in line:
            continue
        if match := INCLUDE.match(line):
            pieces.append((text(number - 1), match[2], match[1] == "include_again", number + 1, tuple(branch)))
            begin = number
        elif match := CONDITION.match(line):
            if match[1] != "if" and branch:  # #elif, #else and #endif end a branch; all but #endif begin one
                branch.pop()
            if match[1] != "endif":
                branch.append(str(number))
    return (*pieces, (text(len(lines)), "", False, 0, ()))


def _expand(
    file: str | GeneratedSource,
    seen: dict[str, list[Branch]],
    line_directive: Callable[[int, str], list[str]],
    branch: Branch = (),
) -> list[str]:
    """Expands a file: #include inserts a file once a program, #include_again at every occurrence.

    `line_directive(line, name)` formats a #line line. `branch` names the #if, #elif and #else around the file, and
    `seen` has those around each file so far. A file that was included in another branch, which may be inactive, is
    included again, with a macro as a guard. Each #include_again is another branch, so files inside it get guards.
    """
    name = source_name(file)
    lines = tuple(file.text.splitlines()) if isinstance(file, GeneratedSource) else _lines(file)
    if not isinstance(file, GeneratedSource):
        seen.setdefault(name, []).append(branch)
    out = line_directive(1, name)
    for text, included, again, next_line, conditions in _pieces(lines):
        out += text
        if not included:
            break
        around = (*branch, *(f"{name}:{line}" for line in conditions))
        guard = "INCLUDED_" + re.sub(r"\W", "_", included)
        before = seen.get(included, [])
        if again:  # a later #include of the file finds the macro, and adds nothing
            out += [f"#define {guard}", *_expand(included, seen, line_directive, (*around, f"{name}:{next_line}"))]
        elif not any(around[: len(each)] == each for each in before):  # not yet in this branch, or in one around it
            is_certain = not around and not before  # no guard needed: the compiler meets this text, and no other copy
            body = _expand(included, seen, line_directive, around)
            out += body if is_certain else [f"#ifndef {guard}", f"#define {guard}", *body, "#endif"]
        out += line_directive(next_line, name)
    return out


def source_name(file: str | GeneratedSource) -> str:
    """Returns the name under which error messages show a shader file or generated source."""
    return file.name if isinstance(file, GeneratedSource) else file


@cache
def alignment(dtype: np.dtype) -> int:
    """Returns C's alignment in bytes of a value of this dtype; fields of shape (2,) and (4,) are vectors."""
    if dtype.fields:
        return max(alignment(field[0]) for field in dtype.fields.values())
    base, shape = dtype.subdtype or (dtype, ())
    return base.itemsize * (shape[0] if len(shape) == 1 and shape[0] in VECTORS and base.kind in "fiu" else 1)


@cache
def argument_layout(kinds: tuple[type, ...]) -> struct.Struct:
    """Returns the C layout of kernel arguments: `kinds` are int, float, bytes (a pointer) or NumPy scalars' dtypes.

    The layout's pack() takes numbers, addresses and the scalars' bytes.
    """
    at, text = 0, "="
    for kind in kinds:
        if isinstance(kind, np.dtype):
            align, size, code = alignment(kind), kind.itemsize, f"{kind.itemsize}s"
        else:
            align, size, code = ARGUMENTS[kind]
        text += f"{-at % align}x{code}"
        at += -at % align + size
    return struct.Struct(text)


def c_struct(name: str, dtype: np.dtype) -> str:
    """Declares a record dtype as a C struct; asserts that C and NumPy lay it out alike.

    Fields of shape (2,) and (4,) become vectors, other shapes arrays. Shape (3,) is refused: float3 has 12 bytes in
    CUDA and 16 in OpenCL.
    """
    lines, end = [], 0
    for field, (kind, offset, *_) in (dtype.fields or {}).items():
        base, shape = kind.subdtype or (kind, ())
        assert shape != (3,), f"{name}.{field}: three components have no portable layout; use four"
        assert offset == end and offset % alignment(kind) == 0, (
            f"{name}.{field}: offset {offset} is not where C puts it"
        )
        vector = len(shape) == 1 and shape[0] in VECTORS
        scalar = SCALARS[base.str[1:]]
        brackets = "" if vector else "".join(f"[{n}]" for n in shape)
        lines.append(f"    {scalar}{shape[0] if vector else ''} {field}{brackets};  // byte {offset}")
        end = offset + kind.itemsize
    assert end == dtype.itemsize and end % alignment(dtype) == 0, f"{name}: {dtype.itemsize} bytes would be padded in C"
    return "typedef struct {\n" + "\n".join(lines) + f"\n}} {name};  // {end} bytes\n"


def _definition(name: str, value: object) -> str:
    """The #define of a constant, or the struct of a dtype."""
    if isinstance(value, np.dtype):
        return c_struct(name, value)
    if isinstance(value, (bool, np.bool_)):
        value = int(value)
    if isinstance(value, (int, np.integer)):
        return f"#define {name} {int(value)}\n"
    if isinstance(value, (float, np.floating)):
        text = repr(float(value))
        assert np.isfinite(value), f"{name}: {value} cannot be a constant of a kernel"
        return f"#define {name} {text}f\n"
    assert isinstance(value, str) and re.fullmatch(r"\w+", value), (
        f"{name}: {value!r} is neither a number, a dtype nor a word"
    )
    return f"#define {name} {value}\n"


def preprocess(file: str | GeneratedSource, prelude: str | None = "common/portable.h", /, **constants: object) -> str:
    """Builds a kernel's text: numbers as #define, the prelude, dtypes as structs, then the file with its includes.

    The prelude reads the numbers and defines the types of the structs' fields, such as uchar.
    """

    def line_directive(line: int, name: str) -> list[str]:
        return [f'#line {line} "{name}"']

    seen: dict[str, list[Branch]] = {}
    numbers = "".join(_definition(k, v) for k, v in sorted(constants.items()) if not isinstance(v, np.dtype))
    structs = "".join(_definition(k, v) for k, v in constants.items() if isinstance(v, np.dtype))
    head = _expand(prelude, seen, line_directive) if prelude else []
    body = _expand(file, seen, line_directive)
    return numbers + "\n".join(head) + "\n" + structs + "\n".join(body) + "\n"


def preprocess_glsl(file: str | GeneratedSource, version: int, **constants: object) -> tuple[str, list[str]]:
    """Builds a GLSL text; returns it with the names of its files, which the numbers in GLSL's #line lines index."""
    names: list[str] = []

    def line_directive(line: int, name: str) -> list[str]:
        if name not in names:
            names.append(name)
        return [f"#line {line} {names.index(name)}"]

    body = _expand(file, {}, line_directive)
    defines = "".join(_definition(k, v) for k, v in sorted(constants.items()))
    return f"#version {version}\n#define GLSL 1\n{defines}" + "\n".join(body) + "\n", names
