"""Services of the host for this process, on every operating system: cores, memory, processes, locks, signals.

Names that only POSIX or only Linux has are used here alone, but for Linux's inotify in window/state/file_watcher.py.
Each function says what it answers on other systems.
"""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from glob import glob
from importlib import import_module
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]  # checked before use
try:
    msvcrt: Any = import_module("msvcrt")
except ImportError:  # not Windows
    msvcrt = None

IS_LINUX = sys.platform.startswith("linux")
IS_WINDOWS = sys.platform == "win32"  # without user ids, process groups, fork() and interval timers
NONBLOCKING = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)  # a descriptor's flags: no waits, no heirs
IMPORTED = time.perf_counter()  # about when the process started


def available_cores() -> int:
    """Cores that this process may use, CPU affinity respected."""
    return len(os.sched_getaffinity(0)) if IS_LINUX else os.cpu_count() or 1


def total_memory() -> int:
    """Bytes of memory of this machine; 0 where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return _windows_memory()[0]


def available_memory() -> int:
    """Bytes of memory that this process may still take, the limit of its container respected."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            lines = dict(line.split(":", 1) for line in file)
        free = int(lines["MemAvailable"].split()[0]) << 10
    except (OSError, KeyError, ValueError):
        free = _windows_memory()[1] or total_memory() or 1 << 32  # macOS counts no memory as free: all of it is offered
    try:  # cgroup v2
        with open("/sys/fs/cgroup/memory.max", encoding="ascii") as file, open("/sys/fs/cgroup/memory.current") as used:
            free = min(free, max(int(file.read()) - int(used.read()), 0))
    except (OSError, ValueError):
        pass
    return free


def used_memory(process_id: int | None = None) -> int:
    """Bytes of private memory (no mapped files) of a process, by default this one; 0 on systems without /proc."""
    with suppress(OSError, ValueError):
        _, resident, shared, *_ = map(int, Path(f"/proc/{process_id or os.getpid()}/statm").read_text("ascii").split())
        return (resident - shared) * os.sysconf("SC_PAGE_SIZE")
    return 0


def tree_memory(process: int) -> int:
    """Bytes of private memory (no mapped files) of a process and all its descendants; 0 on systems without /proc."""
    return sum(used_memory(each) for each in (process, *_descendants(process)))


def trim_memory() -> None:
    """Returns freed memory to the system where the C library is glibc, which keeps arrays below 32 MiB. Takes ms."""
    if IS_LINUX:
        import ctypes

        with suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL(None).malloc_trim(0)


def ask_for_large_pages(address: int, count: int) -> None:
    """Asks Linux for large pages in the whole pages of `count` bytes at an address; elsewhere nothing happens."""
    if IS_LINUX:
        import ctypes
        import mmap

        first = -(-address // mmap.PAGESIZE) * mmap.PAGESIZE
        last = (address + count) // mmap.PAGESIZE * mmap.PAGESIZE
        with suppress(OSError, AttributeError):  # a kernel or a C library without them
            ctypes.CDLL(None).madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), mmap.MADV_HUGEPAGE)


def _windows_memory() -> tuple[int, int]:
    """Bytes of memory and bytes that are free, by GlobalMemoryStatusEx; zeros on other systems."""
    import ctypes

    kernel = getattr(ctypes, "windll", None)
    if kernel is None:
        return 0, 0
    status = (ctypes.c_uint64 * 8)(64)  # MEMORYSTATUSEX: its size and the load, then total and free bytes
    return (status[1], status[2]) if kernel.kernel32.GlobalMemoryStatusEx(status) else (0, 0)


def load_average() -> float:
    """Processes that wanted a core in the last minute; 0 on Windows, which does not count them."""
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):
        return 0.0


def processor_model() -> str:
    """The name of the processor on Linux; empty elsewhere."""
    with suppress(OSError, ValueError), open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return ""


def cpu_throttles() -> int:
    """Number of times that heat slowed the processor since its start; 0 where the system does not count."""
    count = 0
    for path in glob("/sys/devices/system/cpu/cpu*/thermal_throttle/*_throttle_count"):
        with suppress(OSError, ValueError):
            count += int(Path(path).read_text())
    return count


def user_id() -> int | None:
    """The number of this process's user; None on Windows, where a temporary folder is the user's own."""
    return None if IS_WINDOWS else os.getuid()


def is_running(process_id: int) -> bool:
    """True if a process may exist; True where that cannot be known (Windows, Linux without /proc)."""
    return Path(f"/proc/{process_id}").exists() or not Path("/proc/self").exists()


def process_age() -> float:
    """Seconds since this process started, to 10 ms; since this module was imported where the system is not Linux."""
    with suppress(OSError, ValueError, IndexError, AttributeError):
        words = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        started = int(words[19]) / os.sysconf("SC_CLK_TCK")  # field 22, counted from the third
        return max(time.clock_gettime(time.CLOCK_BOOTTIME) - started, 0.0)
    return time.perf_counter() - IMPORTED


def peak_memory() -> int:
    """Bytes of the largest resident set of this process so far; 0 where the system does not say (Windows)."""
    with suppress(OSError, ValueError, IndexError):
        status = Path("/proc/self/status").read_text("utf-8", "replace")  # ru_maxrss counts the parent's too
        return int(status.split("VmHWM:")[1].split()[0]) << 10
    with suppress(ImportError, OSError):
        resource = import_module("resource")
        return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) << (0 if sys.platform == "darwin" else 10)
    return 0


def run_child(command: list[str]) -> tuple[int, float, int]:
    """Runs a command to its end; its exit code, processor seconds, and peak bytes of its largest process.

    Includes grandchildren that the child waited for. 0 bytes where the system does not tell (Windows).
    """
    child = subprocess.Popen(command)
    if IS_WINDOWS:
        return child.wait(), sum(os.times()[2:4]), 0
    status, usage = os.wait4(child.pid, 0)[1:]
    child.returncode = os.waitstatus_to_exitcode(status)
    peak = usage.ru_maxrss << (0 if sys.platform == "darwin" else 10)
    return child.returncode, usage.ru_utime + usage.ru_stime, peak


def processors() -> str:
    """The online processors in Linux's /sys, such as "0-7"; empty elsewhere, and in a container without /sys.

    PoCL aborts where /sys does not list processors.
    """
    with suppress(OSError, ValueError):
        return Path("/sys/devices/system/cpu/online").read_text().strip()
    return ""


@contextmanager
def locked(path: Path, byte: int = 0, seconds: float = 60.0) -> Iterator[None]:
    """One byte of a lock file, held by one process at a time.

    Without a lock on Windows, where the file cannot be made, and when its owner (which may be stopped) keeps it for
    longer than `seconds`.
    """
    file = -1
    try:
        with suppress(OSError):
            if fcntl:
                file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
                _wait_for(lambda: fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte), seconds)
        yield
    finally:
        if file >= 0:
            os.close(file)  # gives the lock back


def try_lock(file: int, byte: int | None = None) -> bool:
    """True if a file, by its descriptor, or one byte of it, is this process's own now; True where files have no locks.

    Locks of bytes end when the process closes any descriptor of the file.
    """
    try:
        if fcntl and byte is None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        elif fcntl:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte or 0)
        elif msvcrt:
            os.lseek(file, byte or 0, os.SEEK_SET)
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
    except (BlockingIOError, PermissionError):  # as Windows has it
        return False
    except OSError:
        pass
    return True


def unlock(file: int, byte: int) -> None:
    """Ends the lock of a byte that try_lock() locked."""
    with suppress(OSError):
        if fcntl:
            fcntl.lockf(file, fcntl.LOCK_UN, 1, byte)
        elif msvcrt:
            os.lseek(file, byte, os.SEEK_SET)
            msvcrt.locking(file, msvcrt.LK_UNLCK, 1)


def unnamed_file(folder: Path) -> tuple[int, str] | None:
    """Opens a new file without a name (O_TMPFILE): its descriptor and /proc path; None if the system cannot."""
    with suppress(OSError, AttributeError):  # a file system, or a system other than Linux, without it
        handle = os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600)
        if os.path.exists(name := f"/proc/self/fd/{handle}"):
            return handle, name
        os.close(handle)
    return None


@contextmanager
def signals_blocked(numbers: Collection[int]) -> Iterator[None]:
    """In the block this thread, and what it starts, get none of these signals; nothing happens on Windows."""
    try:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    except AttributeError:
        yield
        return
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def sent_signal(numbers: Collection[int]) -> int:
    """Takes one of these blocked signals; returns its number if a process sent it, 0 if none has come.

    Signals of the terminal give 0, since this process's children get them too. Needs signal.sigtimedwait(), which must
    not wait: after a stop and a SIGCONT in its wait, Python 3.11 returns an arbitrary number.
    """
    found = signal.sigtimedwait(numbers, 0)
    return found.si_signo if found and found.si_code <= 0 else 0  # SI_USER, SI_QUEUE, SI_TKILL; the kernel's are above


class SharedLock:
    """A lock file held by every process that uses a folder; `alone`: no other process held it at the start."""

    def __init__(self, path: Path) -> None:
        """Raises OSError when the file cannot be made."""
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        self.alone = try_lock(self._file)

    def share(self) -> None:
        """Turns the exclusive lock into a shared one; waits at most 5 s for a process that holds it exclusively."""
        if fcntl:
            with suppress(OSError):
                _wait_for(lambda: fcntl.flock(self._file, fcntl.LOCK_SH | fcntl.LOCK_NB), 5.0)


def _wait_for(lock: Callable[[], None], seconds: float) -> None:
    """Calls lock() until it raises no BlockingIOError; raises this error after `seconds`."""
    end = time.monotonic() + seconds
    while True:
        try:
            return lock()
        except BlockingIOError:
            if time.monotonic() > end:
                raise
        time.sleep(0.01)


def give_way(niceness: int) -> None:
    """Lowers the priority of this process, and lets it leave no core file; nothing happens on Windows."""
    with suppress(ImportError, OSError, AttributeError, ValueError):
        os.nice(niceness)
        resource = import_module("resource")
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def limit_memory(count: int) -> None:
    """Limits the address space of this process to `count` bytes, and forbids a core file; nothing on Windows."""
    with suppress(ImportError, OSError, ValueError):
        resource = import_module("resource")
        resource.setrlimit(resource.RLIMIT_AS, (count, count))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def wait_for_child(child: subprocess.Popen[bytes], seconds: float) -> int:
    """child.wait(seconds), which Linux ends at once with the child; Python alone looks every 50 ms."""
    end = time.monotonic() + seconds
    wait_for_end(child.pid, seconds)
    return child.wait(max(end - time.monotonic(), 0))


def wait_for_end(process: int, seconds: float) -> bool:
    """Waits at most `seconds` until a process ends; False if the system cannot wait for other processes."""
    with suppress(OSError, AttributeError):  # an older Linux; another system
        handle = os.pidfd_open(process)
        try:
            events = select.poll()
            events.register(handle, select.POLLIN)
            events.poll(1000 * seconds)
        finally:
            os.close(handle)
        return True
    return False


def end_process_group(child: subprocess.Popen[bytes]) -> None:
    """Ends a child that leads a session, and all processes of that session; on Windows the child alone."""
    with suppress(OSError):
        child.kill() if IS_WINDOWS else os.killpg(child.pid, 9)


def die_after(seconds: float) -> None:
    """Ends this process by SIGALRM in `seconds`; nothing happens on Windows."""
    if not IS_WINDOWS:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)


def fork_child() -> int:
    """Forks: the child's id in the parent, 0 in the child; on Windows 0, and this process takes the child's role.

    On Linux the child dies with its parent. Only for processes that have no thread and no driver yet.
    """
    if IS_WINDOWS:
        return 0
    parent, child = os.getpid(), os.fork()
    if child == 0:
        die_with(parent)
    return child


def die_with(parent: int) -> None:
    """Lets Linux kill this process as soon as its parent, the process with this id, ends; elsewhere nothing happens.

    The parent is the thread that has started this process.
    """
    if IS_LINUX:
        import ctypes

        set_parent_death_signal = 1  # PR_SET_PDEATHSIG of prctl(2)
        ctypes.CDLL(None).prctl(set_parent_death_signal, int(signal.SIGKILL))
        if os.getppid() != parent:
            os._exit(128 + signal.SIGKILL)


def kill_child(child: int) -> None:
    """End a child that fork_child() made, and wait for its end; on Linux end the processes that it started, too."""
    os.kill(child, signal.SIGSTOP)  # a stopped process starts no children meanwhile
    for process in [*_descendants(child), child]:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    os.waitpid(child, 0)


def _descendants(process: int) -> list[int]:
    """The ids of all descendants of a process: its children, their children, and so on."""
    found = []
    with suppress(OSError):  # the process has ended
        for path in Path(f"/proc/{process}/task").glob("*/children"):
            for child in map(int, path.read_text().split()):
                found += [*_descendants(child), child]
    return found


def format_bytes(count: float) -> str:
    """A number of bytes for a message, in GiB or MiB."""
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.1f} MiB"
