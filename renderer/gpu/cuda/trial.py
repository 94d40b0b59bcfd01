"""A script that system/trial.py runs in a child process: starts NVIDIA's driver and lists its devices.

Arguments: the seconds after which the script ends itself, and the file for the answer. A driver that returns an error
code is harmless. The script imports nothing of the program, which would double its time.
"""

import ctypes
import os
import sys
import threading
from contextlib import suppress


def main(seconds: str, path: str) -> None:
    """Starts the driver; if the process survives, writes the answer."""
    end = threading.Timer(float(seconds), os._exit, (1,))  # in case the parent was killed and cannot end this process
    end.daemon = True
    end.start()
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL: ends with its parent
    with suppress(OSError):  # the library is missing
        start(ctypes.CDLL("libcuda.so.1" if sys.platform.startswith("linux") else "nvcuda.dll"))
    with open(path, "w", encoding="utf-8") as file:
        file.write('[null, ""]')


def start(driver: ctypes.CDLL) -> None:
    """Initializes the driver and reads the name of each device."""
    count, handle = ctypes.c_int(), ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return
    for index in range(count.value):
        driver.cuDeviceGet(ctypes.byref(handle), index)
        driver.cuDeviceGetName(ctypes.create_string_buffer(256), 256, handle)


if __name__ == "__main__":
    main(*sys.argv[1:])
