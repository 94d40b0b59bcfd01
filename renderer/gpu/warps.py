"""Detects warp features of a device by running a kernel, since macros of shaders/common/portable.h define them."""

from weakref import WeakKeyDictionary

from renderer.gpu.device import Device

_ballots: WeakKeyDictionary[Device, bool] = WeakKeyDictionary()


def has_ballot(device: Device) -> bool:
    """True if kernels of the device have warps of 32 with ballots (CUDA, NVIDIA OpenCL)."""
    if device.properties.scalar_threads:
        return False
    if device not in _ballots:
        answer = device.buffer(1, "u4")
        device.kernel("common/query_ballot.cu", "query_ballot", group_size=64)(1, answer)
        _ballots[device] = bool(answer.read()[0])
    return _ballots[device]
