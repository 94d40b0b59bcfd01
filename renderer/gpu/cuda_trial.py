"""A script for a child process: starts NVIDIA's driver and asks for its devices.

It takes the seconds after which it ends, whatever the driver does, and the file of the answer that trial.py reads. A
driver that says that it does not start does no harm. Nothing of the program is imported: that takes as long again.
"""

import ctypes
import os
import sys
import threading
from contextlib import suppress


def main(seconds: str, path: str) -> None:
    """Starts the driver, and writes that this did not end the process."""
    end = threading.Timer(float(seconds), os._exit, (1,))  # where the parent was killed, who would end it
    end.daemon = True
    end.start()
    with suppress(OSError):  # no library
        start(ctypes.CDLL("libcuda.so.1" if sys.platform.startswith("linux") else "nvcuda.dll"))
    with open(path, "w", encoding="utf-8") as file:
        file.write('[null, ""]')


def start(driver: ctypes.CDLL) -> None:
    """Initializes the driver, and reads the name of each device."""
    count, handle = ctypes.c_int(), ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return
    for index in range(count.value):
        driver.cuDeviceGet(ctypes.byref(handle), index)
        driver.cuDeviceGetName(ctypes.create_string_buffer(256), 256, handle)


if __name__ == "__main__":
    main(*sys.argv[1:])
