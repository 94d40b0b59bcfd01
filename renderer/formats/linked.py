"""A registry of the files that model files refer to: pictures, buffers, material libraries; and caches of read files.

Readers of models fill it; the window's file watcher reads it, so that an edited texture reloads the model that uses it.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache, wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from renderer.system.files import file_stamp

MAX_REMEMBERED = 1024  # model files; the oldest are forgotten
Stamp = tuple[int, int] | None  # file_stamp() of a file when it was read: time and size; None if it was missing
Stamps = Mapping[Path, Stamp]
P = ParamSpec("P")
T = TypeVar("T")
Reader = Callable[Concatenate[Path, P], T]
CachedReader = Callable[Concatenate[Path | str, P], T]
_linked: dict[Path, Stamps] = {}


def remember_links(path: Path, files: Stamps) -> None:
    """Records the `files` that the model file `path` refers to, missing ones included; replaces an earlier record."""
    _linked.pop(path, None)
    _linked[path] = dict(files)
    while len(_linked) > MAX_REMEMBERED:
        del _linked[next(iter(_linked))]


def linked_files(path: Path) -> frozenset[Path]:
    """Returns the recorded files of a model file; empty if it was never read. Touches no file."""
    return frozenset(_linked.get(path, {}))


def cached_by_file(count: int) -> Callable[[Reader[P, T]], CachedReader[P, T]]:
    """Decorates a reader, a function whose first argument is a file: its last `count` results are kept.

    A file is read again when it has changed, or when a file has changed that the reader named by remember_links().
    """

    def decorate(read: Reader[P, T]) -> CachedReader[P, T]:
        @lru_cache(maxsize=count)
        def read_once(path: Path, stamp: Stamp, *rest: P.args, **named: P.kwargs) -> tuple[T, Stamps]:
            """The result for a file with this stamp, and the stamps of the linked files that read() has recorded."""
            return read(path, *rest, **named), _linked.get(path, {})

        @wraps(read)
        def cached(file: Path | str, /, *rest: P.args, **named: P.kwargs) -> T:
            """The kept result, or a new one if a file has changed."""
            path = Path(file)
            # A new stamp of the file is a new key of the cache. Stamps of linked files are no part of the key: if one
            # has changed, the cache is emptied, because lru_cache cannot drop a single result.
            result, linked = read_once(path, file_stamp(path), *rest, **named)  # type: ignore[arg-type]  # hashable
            if any(file_stamp(other) != stamp for other, stamp in linked.items()):
                read_once.cache_clear()
                result, _ = read_once(path, file_stamp(path), *rest, **named)  # type: ignore[arg-type]
            return result

        return cached

    return decorate
