"""What the host offers this process: processor cores and free memory."""

import os


def available_cores() -> int:
    """Cores that this process may use, CPU affinity respected."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def available_memory() -> int:
    """Bytes of memory that this process may still take, the limit of its container respected."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            lines = dict(line.split(":", 1) for line in file)
        free = int(lines["MemAvailable"].split()[0]) << 10
    except (OSError, KeyError, ValueError):
        free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:  # cgroup v2
        with open("/sys/fs/cgroup/memory.max", encoding="ascii") as file, open("/sys/fs/cgroup/memory.current") as used:
            free = min(free, max(int(file.read()) - int(used.read()), 0))
    except (OSError, ValueError):
        pass
    return free


def format_bytes(count: float) -> str:
    """A number of bytes for a message, in GiB or MiB."""
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.1f} MiB"
