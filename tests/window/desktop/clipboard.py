"""Owns the clipboard of an X server, as a program from which a user has copied something.

    python -m tests.window.desktop.clipboard image|text|empty|megabytes|broken

Needs DISPLAY and libX11. Prints a line once it owns the selection CLIPBOARD, and answers requests until it is killed.
`image` offers image/png alone, as a browser's "copy image"; `megabytes` is a text of 4 MiB, sent in pieces (the INCR
protocol, ICCCM section 2.7.2); `broken` is a text that is not UTF-8.
"""

import ctypes
import sys
from ctypes import POINTER, Structure, byref, c_char_p, c_int, c_long, c_ulong, c_void_p

CONTENTS = {
    "image": ("image/png", b"\x89PNG\r\n\x1a\n" + bytes(1000)),
    "text": ("UTF8_STRING", "0.25 é∂🙂".encode()),
    "empty": ("UTF8_STRING", b""),
    "megabytes": ("UTF8_STRING", b"0123456789abcdef" * (4 << 16)),
    "broken": ("UTF8_STRING", b"\xff\xfe\x00\xc3\x28" * 10),
}
PIECE = 1 << 16  # bytes of one property
ATOM, REPLACE = 4, 0  # XA_ATOM, PropModeReplace
PROPERTY_NOTIFY, SELECTION_REQUEST, SELECTION_NOTIFY = 28, 30, 31
PROPERTY_CHANGE_MASK, DELETED = 1 << 22, 1


class Request(Structure):
    """XSelectionRequestEvent."""

    _fields_ = [
        ("type", c_int), ("serial", c_ulong), ("send_event", c_int), ("display", c_void_p), ("owner", c_ulong),
        ("requestor", c_ulong), ("selection", c_ulong), ("target", c_ulong), ("property", c_ulong), ("time", c_ulong),
    ]  # fmt: skip


class Answer(Structure):
    """XSelectionEvent."""

    _fields_ = [
        ("type", c_int), ("serial", c_ulong), ("send_event", c_int), ("display", c_void_p), ("requestor", c_ulong),
        ("selection", c_ulong), ("target", c_ulong), ("property", c_ulong), ("time", c_ulong),
    ]  # fmt: skip


class PropertyChange(Structure):
    """XPropertyEvent."""

    _fields_ = [
        ("type", c_int), ("serial", c_ulong), ("send_event", c_int), ("display", c_void_p), ("window", c_ulong),
        ("atom", c_ulong), ("time", c_ulong), ("state", c_int),
    ]  # fmt: skip


class Event(ctypes.Union):
    """XEvent."""

    _fields_ = [("type", c_int), ("request", Request), ("change", PropertyChange), ("size", c_long * 24)]


def own(kind: str) -> None:
    """Owns the clipboard until the process is killed."""
    x11 = ctypes.CDLL("libX11.so.6")
    x11.XOpenDisplay.restype = c_void_p
    x11.XInternAtom.restype = x11.XCreateSimpleWindow.restype = x11.XDefaultRootWindow.restype = c_ulong
    x11.XDefaultRootWindow.argtypes = [c_void_p]
    x11.XInternAtom.argtypes = [c_void_p, c_char_p, c_int]
    x11.XCreateSimpleWindow.argtypes = [c_void_p, c_ulong, *[c_int] * 5, c_ulong, c_ulong]
    x11.XSetSelectionOwner.argtypes = [c_void_p, c_ulong, c_ulong, c_ulong]
    x11.XSelectInput.argtypes = [c_void_p, c_ulong, c_long]
    x11.XNextEvent.argtypes = [c_void_p, POINTER(Event)]
    x11.XSendEvent.argtypes = [c_void_p, c_ulong, c_int, c_long, POINTER(Answer)]
    x11.XChangeProperty.argtypes = [c_void_p, c_ulong, c_ulong, c_ulong, c_int, c_int, c_void_p, c_int]
    x11.XFlush.argtypes = x11.XSync.argtypes = [c_void_p, c_int]
    display = x11.XOpenDisplay(None)
    assert display, "no display"
    atom = {name: x11.XInternAtom(display, name.encode(), 0) for name in ("CLIPBOARD", "TARGETS", "INCR")}
    offered, data = CONTENTS[kind]
    target = x11.XInternAtom(display, offered.encode(), 0)
    window = x11.XCreateSimpleWindow(display, x11.XDefaultRootWindow(display), 0, 0, 1, 1, 0, 0, 0)
    x11.XSetSelectionOwner(display, atom["CLIPBOARD"], window, 0)
    x11.XSync(display, 0)
    print(kind, flush=True)
    rest: dict[tuple[int, int], bytes] = {}  # what is to be sent, by window and property
    event = Event()
    while True:
        x11.XNextEvent(display, byref(event))
        change, request = event.change, event.request
        if event.type == PROPERTY_NOTIFY and change.state == DELETED and (change.window, change.atom) in rest:
            at = change.window, change.atom
            piece, rest[at] = rest[at][:PIECE], rest[at][PIECE:]
            x11.XChangeProperty(display, *at, target, 8, REPLACE, piece, len(piece))
            if not piece:
                del rest[at]
        elif event.type == SELECTION_REQUEST:
            at = request.requestor, request.property
            accepted = request.property
            if request.target == atom["TARGETS"]:
                names = (c_ulong * 2)(atom["TARGETS"], target)
                x11.XChangeProperty(display, *at, ATOM, 32, REPLACE, names, 2)
            elif request.target != target:
                accepted = 0  # refused
            elif len(data) <= PIECE:
                x11.XChangeProperty(display, *at, target, 8, REPLACE, data, len(data))
            else:
                x11.XSelectInput(display, request.requestor, PROPERTY_CHANGE_MASK)
                x11.XChangeProperty(display, *at, atom["INCR"], 32, REPLACE, (c_ulong * 1)(len(data)), 1)
                rest[at] = data
            answer = Answer(
                SELECTION_NOTIFY, 0, 1, display, request.requestor, request.selection, request.target, accepted,
                request.time,
            )  # fmt: skip
            x11.XSendEvent(display, request.requestor, 0, 0, byref(answer))
        x11.XFlush(display, 0)


if __name__ == "__main__":
    own(sys.argv[1])
