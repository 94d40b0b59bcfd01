"""The child process of icd.py: lists the devices of the only OpenCL driver it sees and runs a kernel on each."""

import ctypes
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyopencl as cl

KERNEL = "__kernel void increment(__global int *values) { values[get_global_id(0)] += 1; }"
NO_DEVICE = "it shows no device"  # common: drivers are often installed without their hardware


def try_devices(library: str) -> dict[str, object]:
    """Tries every device; returns {"reason": why no device works, or "", "harmless": bool}.

    harmless: the driver does not load, shows no device, or has a device that works.
    """
    import pyopencl as cl

    try:
        platforms = cl.get_platforms()
    except cl.Error:
        return {"reason": _why_not_loaded(library), "harmless": True}
    devices = []
    for platform in platforms:
        try:
            devices += platform.get_devices()
        except cl.Error:  # a platform without devices reports an error
            continue
    reasons = [reason for device in devices if (reason := _try_device(device))]
    if len(reasons) < len(devices):
        return {"reason": "", "harmless": True}  # one device works; opening.py tests each that it opens
    return {"reason": "; ".join(reasons) or NO_DEVICE, "harmless": not reasons}


def _try_device(device: "cl.Device") -> str:
    """Runs a kernel on a device; returns why that failed, or ""."""
    import numpy as np  # not at the top: icd.py imports this module for the name NO_DEVICE alone
    import pyopencl as cl

    name = device.name.strip()
    values = np.arange(64, dtype=np.int32)
    answer = np.empty_like(values)
    try:
        context = cl.Context([device])
        queue = cl.CommandQueue(context)
        buffer = cl.Buffer(context, cl.mem_flags.COPY_HOST_PTR, hostbuf=values)
        cl.Program(context, KERNEL).build().increment(queue, values.shape, None, buffer)
        cl.enqueue_copy(queue, answer, buffer)
    except cl.Error as error:
        return f"{name} does not run a kernel ({str(error).splitlines()[0]})"
    return "" if np.array_equal(answer, values + 1) else f"{name} computes wrong results"


def _why_not_loaded(library: str) -> str:
    """Returns why a driver's library shows no platform."""
    if library:
        try:
            ctypes.CDLL(library)
        except OSError as error:
            return f"its library cannot be loaded ({str(error)[:200]})"
        return f"its library {library} is no OpenCL driver"
    return "it shows no platform"
