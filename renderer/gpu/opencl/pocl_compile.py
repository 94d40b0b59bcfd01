"""Compiles for PoCL in child processes and copies the results into PoCL's cache, from which this process loads them.

PoCL 3.1 compiles a work-group's function at the first launch, during which no other kernel of the process can start.
Markers in the cache's folder `ready` record which programs and functions are compiled, by text, device and launch; each
marker lists the names of its files.
"""

import hashlib
import os
from pathlib import Path
from typing import NamedTuple

from renderer.errors import KernelError
from renderer.gpu.cache import write_atomically
from renderer.gpu.compilation import Compiler, CompilerDied
from renderer.plain import Json

MAX_SMALL_GRID = 65534  # work-items; PoCL compiles a separate function for larger launches


class Launch(NamedTuple):
    """A launch configuration for which PoCL compiles a function; `sizes` are the arguments' bytes, 0 for a pointer."""

    entry: str
    group_size: int
    large: bool
    sizes: tuple[int, ...]

    @property
    def threads(self) -> int:
        """Work-items of a launch with this configuration."""
        groups = MAX_SMALL_GRID // self.group_size + 1 if self.large else 1
        return groups * self.group_size


class PoclCompile:
    """Compiles for one PoCL device; `identity` names the device and its driver version."""

    def __init__(self, platform: int, index: int, identity: str):
        self._platform, self._index, self._identity = platform, index, identity
        self._cache = Path(os.environ["POCL_CACHE_DIR"])

    def program(self, compiler: Compiler, text: str, options: list[str], name: str) -> None:
        """Compiles a program into PoCL's cache unless it is there; the later build reports errors of the text."""
        marker = self._marker(text, options)
        if self._is_ready(marker):
            return
        try:
            folder = compiler.run({"do": "program", **self._program(text, options)}, name)["folder"]
        except CompilerDied:
            raise
        except KernelError:  # the text has an error
            return
        self._publish(compiler, folder, marker)

    def kernel(self, compiler: Compiler, text: str, options: list[str], launch: Launch, name: str) -> None:
        """Compiles a work-group's function into PoCL's cache unless it is there."""
        marker = self._marker(text, options, *launch[:3])  # without `sizes`: the function does not depend on them
        if self._is_ready(marker):
            return
        program = self._program(text, options)
        folder = compiler.run({"do": "program", **program}, name)["folder"]
        functions = f"{folder}/{launch.entry}/**/*.so"
        before = set(compiler.folder.glob(functions))
        words = dict(entry=launch.entry, group_size=launch.group_size, threads=launch.threads, sizes=launch.sizes)
        try:
            compiler.run({"do": "kernel", "program": program, **words}, name)
        except CompilerDied:  # by the kernel, which may crash on arguments of zero after PoCL has written its function
            small = "" if launch.large else "-smallgrid"  # `known`: the function's folder, as PoCL names it
            known = compiler.folder / folder / launch.entry / f"{launch.group_size}-1-1-goffs0{small}"
            if set(compiler.folder.glob(functions)) <= before and not any(known.glob("*.so")):
                raise  # the compiler crashed, not the kernel
        self._publish(compiler, folder, marker)

    def _program(self, text: str, options: list[str]) -> Json:
        """A program as compile_child.py builds it: the arguments of its build()."""
        device = dict(platform=self._platform, index=self._index, known=str(self._cache))
        return {"text": text, "options": options, **device}

    def _marker(self, *parts: object) -> Path:
        """The marker of a program (text, options) or of a function (with entry, group size, large)."""
        key = "\0".join(map(str, (self._identity, *parts)))
        return self._cache / "ready" / hashlib.sha256(key.encode()).hexdigest()

    def _is_ready(self, marker: Path) -> bool:
        try:
            names = marker.read_text(encoding="utf-8").splitlines()
        except OSError:
            return False
        return bool(names) and all((self._cache / name).exists() for name in names)

    def _publish(self, compiler: Compiler, folder: str, marker: Path) -> None:
        """Copies a program's new files into PoCL's cache, each atomically, and writes the marker.

        Raises CompilerDied if the compiler is closed: its folder may be incomplete, and the marker vouches for it.
        """
        with compiler.reading:
            if compiler.is_closed:
                raise CompilerDied("the window is closed")
            files = [path for path in (compiler.folder / folder).rglob("*") if path.is_file()]
            names = [str(path.relative_to(compiler.folder)) for path in files]
            for path, name in zip(files, names, strict=True):
                if not (self._cache / name).exists():
                    write_atomically(self._cache / name, path.read_bytes())
            write_atomically(marker, "\n".join(names).encode())
