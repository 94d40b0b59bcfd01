"""CUDA source code to machine code by NVRTC (no host compiler), cubins cached on disk by content (NVRTC manual)."""

import hashlib
import importlib.util
import json
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from renderer.errors import KernelError, UnavailableError
from renderer.gpu.cache import cache_folder, read_entry, write_atomically, write_entry
from renderer.gpu.trial import state_of_files


def compile_cubin(
    text: str, architecture: str, name: str = "kernel.cu", strict: bool = False, compiler: Any = None
) -> bytes:
    """The machine code of CUDA source for an architecture such as "sm_90", from the disk cache if it is there.

    `strict` forbids contraction into fused multiply-adds. `compiler` is the NVRTC binding; tests replace it. Raises
    KernelError with NVRTC's log.
    """
    options = _options(architecture, strict)
    path = _path(text, options, version_of(compiler) if compiler else _version())
    code = read_entry(path)
    if code is None:
        code = _compile(compiler or _binding(), text, options, name)
        write_entry(path, code)
    return code


def is_cached(text: str, architecture: str, strict: bool) -> bool:
    """Whether compile_cubin() finds the code in the disk cache."""
    return read_entry(_path(text, _options(architecture, strict), _version())) is not None


def why_missing() -> str:
    """Why NVRTC's Python package cannot be used, or "", found without its import, which takes 30 ms."""
    with suppress(ModuleNotFoundError):  # of its parent
        if importlib.util.find_spec("cuda.bindings.nvrtc"):
            return ""
    return "no module cuda.bindings.nvrtc"


@cache
def _binding() -> Any:
    """NVRTC's Python package."""
    try:
        from cuda.bindings import nvrtc
    except ImportError as error:
        raise UnavailableError(f"NVRTC is missing ({error}): pip install cuda-bindings nvidia-cuda-nvrtc") from error
    return nvrtc


def prepare() -> None:
    """Loads the library ahead, where it has compiled nothing yet and will be waited for."""
    if not why_missing():
        _version()


def version_of(compiler: Any) -> str:
    """The version that NVRTC's Python package says of the library, which it loads."""
    _, major, minor = compiler.nvrtcVersion()
    return f"nvrtc {major}.{minor}"


@cache
def _version() -> str:
    """version_of(), from a note in the cache folder while the library's files are the same: loading it takes 40 ms."""
    path, state = cache_folder() / "nvrtc.json", _library_state()
    with suppress(OSError, ValueError, RecursionError):
        noted = json.loads(path.read_text(encoding="utf-8"))
        if state and isinstance(noted, list) and noted[:1] == [state] and isinstance(noted[-1], str):
            return noted[-1]
    version = version_of(_binding())
    if state:
        write_atomically(path, json.dumps([state, version]).encode())
    return version


def _library_state() -> str:
    """Paths, sizes and times of the library in the packages of NVIDIA's wheels; "" where it is elsewhere."""
    found = importlib.util.find_spec("nvidia")
    folders = found.submodule_search_locations if found else []
    files = sorted(file for folder in folders or [] for file in Path(folder).glob("*/lib/libnvrtc.so*"))
    return " ".join([*map(str, files), state_of_files(*files)]) if files else ""


def _options(architecture: str, strict: bool) -> list[str]:
    options = [f"--gpu-architecture={architecture}", "--std=c++17", "--generate-line-info"]
    options += ["--diag-suppress=1444"]  # double4 is deprecated in CUDA 13; OpenCL has it too
    return [*options, "--fmad=false"] if strict else options


def _path(text: str, options: list[str], version: str) -> Path:
    key = hashlib.sha256("\0".join([text, *options, version]).encode()).hexdigest()
    return cache_folder() / "cubin" / f"{key}.cubin"


def _compile(compiler: Any, text: str, options: list[str], name: str) -> bytes:
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
        code = b" " * size
        compiler.nvrtcGetCUBIN(program, code)
        return code
    finally:
        compiler.nvrtcDestroyProgram(program)
