"""The Laplacian filter: bytes read and written a second, beside the device's own copy, or OpenCV on a CPU."""

import time

import numpy as np

from renderer.bench.cases import Case, LazyDevice
from renderer.numerics.laplacian import bind_laplacian

GPU_METHODS = "naive", "shared_tiles", "register_rows"


def cases(gpu):
    is_cpu = gpu.device.properties.scalar_threads
    side = 4096 if is_cpu else 8192
    shapes = {
        "float32": (side, side),
        "uint8": (side, side),
        "uint8 RGB": (side // 2, side, 3),
        "RGBA": (side // 2, side // 2, 4),
        "float32 odd": (side - 1, side - 2),  # rows that are no multiples of 16 bytes
        "uint8 odd": (side - 1, side - 3),
    }
    return [
        edges(gpu, f"{method}/{name}/neighbors={count}", shape, "u1" if "uint8" in name else "f4", count, method)
        for method in (("cpu_rows",) if is_cpu else GPU_METHODS)
        for name, shape in shapes.items()
        for count in (4, 8)
    ]


def edges(gpu, name: str, shape, dtype: str, neighbors: int, method: str) -> Case:
    opened = []
    size = 2 * int(np.prod(shape)) * np.dtype(dtype).itemsize

    def check() -> bytes:
        rng = np.random.default_rng(1)
        image = rng.random(shape, "f4") if dtype == "f4" else rng.integers(0, 256, shape, "u1")
        source, out = gpu.device.buffer(shape, dtype).write(image), gpu.device.buffer(shape, dtype).fill(0xFF)
        launch = bind_laplacian(gpu.device, source, out, neighbors, "clamp", method)
        launch()
        found, part = out.read(), image[:64, :64].astype("f8")
        near = [np.roll(part, step, axis) for axis in (0, 1) for step in (1, -1)]
        near += [np.roll(np.roll(part, y, 0), x, 1) for y in (1, -1) for x in (1, -1)] if neighbors == 8 else []
        wanted = (sum(near) - neighbors * part)[1:-1, 1:-1]
        wanted = wanted if dtype == "f4" else np.clip(wanted, 0, 255)
        assert np.allclose(found[1:63, 1:63], wanted, atol=1e-4)
        opened[:] = [launch, source, out, image]
        return found[: 1 << 10].tobytes() if dtype == "u1" else b""

    def against() -> float:
        if gpu.device.properties.scalar_threads:
            return _opencv_seconds(opened[3], neighbors)
        times = [gpu.device.time_seconds(lambda: opened[2].copy_from(opened[1])) for _ in range(12)]
        return float(np.median(times[2:]))

    peer = (against, "copy" if not gpu.device.properties.scalar_threads else "OpenCV") if _has_peer(gpu) else (None, "")
    facts = {"shape": list(shape)}
    return Case(name, "GB/s", size / 1e9, lambda: opened[0](), check, LazyDevice(lambda: gpu.device), *peer, facts)


def _has_peer(gpu) -> bool:
    if not gpu.device.properties.scalar_threads:
        return True
    try:
        import cv2  # noqa: F401
    except ImportError:
        return False
    return True


def _opencv_seconds(image: np.ndarray, neighbors: int) -> float:
    import cv2

    out, times = np.empty_like(image), []
    weights = np.array([[1, 1, 1], [1, -8, 1], [1, 1, 1]], "f4")
    for _ in range(6):
        start = time.perf_counter()
        if neighbors == 4:
            cv2.Laplacian(image, -1, dst=out, ksize=1, borderType=cv2.BORDER_REPLICATE)
        else:
            cv2.filter2D(image, -1, weights, dst=out, borderType=cv2.BORDER_REPLICATE)
        times.append(time.perf_counter() - start)
    return float(np.median(times[1:]))
