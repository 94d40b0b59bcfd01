"""The command `rayfold` in a checkout: python main.py COMMAND ..."""

import _signal  # a signal before run() ends the process without a traceback; `signal` itself imports more

if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

from renderer.__main__ import run  # noqa: E402

if __name__ == "__main__":
    run()
