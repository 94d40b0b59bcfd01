"""Runs one command and writes what it took: time, processor time, peak memory, hardware counts.

    python -I -S launcher.py REPORT.json EVENTS COMMAND ...

It imports nothing of the program but renderer.host. `bench ab --command` starts it for each process that it measures,
because the system's peak of a child includes the memory of the process that started it: this one is small. EVENTS is a
list with commas, of names in EVENTS, or empty. An event counts in user mode, in the command and all processes that it
starts. perf_event_open(2).
"""

import ctypes
import json
import os
import platform
import struct
import sys
import time

EVENTS = {  # name -> type and number of an event
    "instructions": (0, 1),
    "cycles": (0, 0),
    "cache misses": (0, 3),
    "page faults": (1, 2),  # counted by the system: for tests on machines whose processor has no counters
}
SYSTEM_CALLS = {"x86_64": 298, "aarch64": 241, "riscv64": 241, "ppc64le": 319, "s390x": 331}
ATTRIBUTES = "<IIQQQQQQQ"  # type, size, event, period, sample type, read format, flags, and two that stay 0
TIMES = 1 | 2  # read format: the count, then the time enabled and the time counted
# Flags: disabled until the command is executed, inherited, neither the kernel nor the hypervisor.
FLAGS = 1 << 0 | 1 << 1 | 1 << 5 | 1 << 6 | 1 << 12
CLOSE_ON_EXEC = 8


def open_event(name: str) -> int:
    """Opens an event for the next program that this thread starts, and its descendants; OSError where refused."""
    number = SYSTEM_CALLS.get(platform.machine()) if sys.platform.startswith("linux") else None
    if number is None:
        raise OSError("this system has no perf_event_open")
    kind, event = EVENTS[name]
    attributes = struct.pack(ATTRIBUTES, kind, struct.calcsize(ATTRIBUTES), event, 0, 0, TIMES, FLAGS, 0, 0)
    descriptor = ctypes.CDLL(None, use_errno=True).syscall(number, attributes, 0, -1, -1, CLOSE_ON_EXEC)
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(descriptor)


def read_event(descriptor: int) -> int | None:
    """The count, and closes the event; None if other events took the counter for a while, so that it is an estimate."""
    count, enabled, running = struct.unpack("<QQQ", os.read(descriptor, 24))
    os.close(descriptor)
    return int(count) if 0 < running == enabled else None


def main(report: str, events: str, command: list[str]) -> None:
    """Runs the command; writes its exit code and what it took, or why it cannot be started, as JSON."""
    from renderer.host import run_child

    opened = {name: open_event(name) for name in events.split(",") if name}
    began = time.perf_counter_ns()
    try:
        code, seconds, peak = run_child(command)
        took: dict[str, object] = {"code": code, "wall_ns": time.perf_counter_ns() - began}
        took |= {"cpu_ns": max(1, round(1e9 * seconds)), "peak memory": peak}  # bytes of the largest process
        took |= {name: read_event(descriptor) for name, descriptor in opened.items()}
    except OSError as error:
        took = {"error": error.strerror}
    with open(report, "w") as file:
        json.dump(took, file)


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
