"""The child process of icd.py: loads the one OpenCL driver it is given, lists its devices, runs a kernel on each.

Prints what is wrong and ends with 1, or dies as the driver lets it die.
"""

import sys

import numpy as np

NO_DEVICE = "it is no OpenCL driver, or it shows no device"
KERNEL = "__kernel void increment(__global int *values) { values[get_global_id(0)] += 1; }"


def main() -> int:
    """Tries every device of every platform."""
    import pyopencl as cl

    try:
        devices = [device for platform in cl.get_platforms() for device in platform.get_devices()]
    except cl.Error:
        devices = []
    if not devices:
        print(NO_DEVICE)
        return 1
    for device in devices:
        try:
            context = cl.Context([device])
            queue = cl.CommandQueue(context)
            values = np.arange(64, dtype=np.int32)
            buffer = cl.Buffer(context, cl.mem_flags.COPY_HOST_PTR, hostbuf=values)
            cl.Program(context, KERNEL).build().increment(queue, values.shape, None, buffer)
            answer = np.empty_like(values)
            cl.enqueue_copy(queue, answer, buffer)
        except cl.Error as error:
            print(f"{device.name.strip()} does not run a kernel ({error})")
            return 1
        if not np.array_equal(answer, values + 1):
            print(f"{device.name.strip()} computes wrong results")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
