"""Compiles CUDA source code to cubins by NVRTC, which needs no host compiler; cubins are cached on disk by content.

compile_cubin() takes a text and an architecture such as "sm_90", and returns the bytes of the cubin, machine code that
the driver loads. The key of the cache has the text, the options and the compiler's version.
"""

import hashlib
import importlib.util
import json
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType

from renderer.errors import KernelError, UnavailableError
from renderer.gpu.cache import cache_folder, read_entry, write_atomically, write_entry
from renderer.gpu.verdicts import state_of_files
from renderer.system.install import pip_install


def compile_cubin(
    text: str, architecture: str, name: str = "kernel.cu", strict: bool = False, compiler: ModuleType | None = None
) -> bytes:
    """Compiles CUDA source to a cubin for an architecture such as "sm_90", or loads it from the disk cache.

    `strict` forbids contraction into fused multiply-adds. `compiler` is NVRTC's Python binding, which tests replace.
    Raises KernelError with NVRTC's log.
    """
    options = _options(architecture, strict)
    path = _path(text, options, compiler_version(compiler) if compiler else _version())
    code = read_entry(path)
    if code is None:
        code = _compile(compiler or _binding(), text, options, name)
        write_entry(path, code)
    return code


def is_cached(text: str, architecture: str, strict: bool) -> bool:
    """True if the disk cache holds the cubin of a text."""
    return read_entry(_path(text, _options(architecture, strict), _version())) is not None


def why_missing() -> str:
    """Returns why NVRTC's Python package cannot be used, or ""; does not import it, which takes 30 ms."""
    with suppress(ModuleNotFoundError):  # raised if the parent package is missing
        if importlib.util.find_spec("cuda.bindings.nvrtc"):
            return ""
    return "no module cuda.bindings.nvrtc"


@cache
def _binding() -> ModuleType:
    """Imports NVRTC's Python package."""
    try:
        return importlib.import_module("cuda.bindings.nvrtc")
    except ImportError as error:
        raise UnavailableError(f"NVRTC is missing ({error}): {pip_install('cuda')}") from error


def prepare() -> None:
    """Loads the NVRTC library ahead of the first compilation."""
    if not why_missing():
        _version()


def compiler_version(compiler: ModuleType) -> str:
    """Asks the NVRTC library for its version; loads the library."""
    _, major, minor = compiler.nvrtcVersion()
    return f"nvrtc {major}.{minor}"


@cache
def _version() -> str:
    """Returns compiler_version(), cached on disk until the library's files change: loading the library takes 40 ms."""
    path, state = cache_folder() / "nvrtc.json", _library_state()
    with suppress(OSError, ValueError, RecursionError):
        noted = json.loads(path.read_text(encoding="utf-8"))
        if state and isinstance(noted, list) and noted[:1] == [state] and isinstance(noted[-1], str):
            return noted[-1]
    version = compiler_version(_binding())
    if state:
        write_atomically(path, json.dumps([state, version]).encode())
    return version


def _library_state() -> str:
    """Describes the library's files in NVIDIA's wheels by path, size and time; "" if it is installed elsewhere."""
    found = importlib.util.find_spec("nvidia")
    folders = found.submodule_search_locations if found else []
    files = sorted(file for folder in folders or [] for file in Path(folder).glob("*/lib/libnvrtc.so*"))
    return " ".join([*map(str, files), state_of_files(*files)]) if files else ""


def _options(architecture: str, strict: bool) -> list[str]:
    """NVRTC's options; --generate-line-info names source lines in profilers, and costs nothing."""
    options = [f"--gpu-architecture={architecture}", "--std=c++17", "--generate-line-info"]
    options += ["--diag-suppress=1444"]  # double4 is deprecated in CUDA 13; OpenCL has it too
    return [*options, "--fmad=false"] if strict else options


def _path(text: str, options: list[str], version: str) -> Path:
    """The cubin's file in the cache."""
    key = hashlib.sha256("\0".join([text, *options, version]).encode()).hexdigest()
    return cache_folder() / "cubin" / f"{key}.cubin"


def _compile(compiler: ModuleType, text: str, options: list[str], name: str) -> bytes:
    """Compiles by NVRTC; KernelError with the compiler's log."""
    _, program = compiler.nvrtcCreateProgram(text.encode(), name.encode(), 0, None, None)
    try:
        (status,) = compiler.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
        if status != compiler.nvrtcResult.NVRTC_SUCCESS:
            _, size = compiler.nvrtcGetProgramLogSize(program)
            log = b" " * size
            compiler.nvrtcGetProgramLog(program, log)
            raise KernelError(
                f"{name}: NVRTC: compilation failed\n{log.decode(errors='replace').strip(chr(0)).strip()}"
            )
        _, size = compiler.nvrtcGetCUBINSize(program)
        code = b" " * int(size)
        compiler.nvrtcGetCUBIN(program, code)
        return code
    finally:
        compiler.nvrtcDestroyProgram(program)
