"""The command `rayfold`, also as python -m renderer, which signals end quietly while the program is imported."""

import os
import signal


def run() -> None:
    """Runs the process's own command line, and ends the process."""
    _fill_closed_streams()
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"):  # STOP_SIGNALS of process.py, whose import takes 50 ms
        number = getattr(signal, name, None)
        if number and signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _end)
    from renderer.cli import run_process

    run_process()


def _fill_closed_streams() -> None:
    """Opens the null device as each standard stream that the caller closed.

    Else a driver's file gets the number of a stream, and who writes to that stream writes to the device: NVIDIA's GL
    crashed.
    """
    while (handle := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(handle)


def _end(*_: object) -> None:
    os.write(2, b"rayfold: interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    run()
