"""CUDA source code to machine code by NVRTC (no host compiler), cubins cached on disk by content (NVRTC manual)."""

import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

from renderer.errors import KernelError, UnavailableError

try:
    from cuda.bindings import nvrtc as nvrtc

    IMPORT_ERROR = ""
except ImportError as error:
    nvrtc, IMPORT_ERROR = None, str(error)


def cache_folder() -> Path:
    """Where compiled kernels are kept: RAYFOLD_CACHE, or rayfold/ in the user's cache folder."""
    root = os.environ.get("RAYFOLD_CACHE")
    return Path(root) if root else Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "rayfold"


def compile_cubin(
    text: str, architecture: str, name: str = "kernel.cu", strict: bool = False, compiler: Any = None
) -> bytes:
    """The machine code of CUDA source for an architecture such as "sm_90", from the disk cache if it is there.

    `strict` forbids contraction into fused multiply-adds. `compiler` is the NVRTC binding; tests replace it. Raises
    KernelError with NVRTC's log.
    """
    compiler = compiler or nvrtc
    if compiler is None:
        raise UnavailableError(f"NVRTC is missing ({IMPORT_ERROR}): pip install cuda-bindings nvidia-cuda-nvrtc")
    options = [f"--gpu-architecture={architecture}", "--std=c++17", "--generate-line-info"]
    options += ["--diag-suppress=1444"]  # double4 is deprecated in CUDA 13; OpenCL has it too
    options += ["--fmad=false"] if strict else []
    _, major, minor = compiler.nvrtcVersion()
    key = hashlib.sha256("\0".join([text, *options, f"nvrtc {major}.{minor}"]).encode()).hexdigest()
    path = cache_folder() / "cubin" / f"{key}.cubin"
    try:
        return path.read_bytes()
    except OSError:
        code = _compile(compiler, text, options, name)
    _write_cache(path, code)
    return code


def _write_cache(path: Path, code: bytes) -> None:
    """Write the cache file atomically; a cache that cannot be written is not an error."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(code)
        os.replace(file.name, path)
    except OSError:
        pass


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
