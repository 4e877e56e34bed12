"""Ctrl-C while the program is still being loaded, which takes about a second.

``autotune/__init__.py`` imports this first, because already the program's first line imports all of
the package. It must import nothing heavy itself.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import PurePath
from types import FrameType

INTERRUPTED = 130
"""What the shell expects after Ctrl-C."""


def watch() -> None:
    """From now on Ctrl-C ends the process at once, with one line and no traceback.

    An exception would not do: some of what is imported swallows it. Nothing has begun yet that
    would need an orderly end.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    # Ignored, as under nohup, or handled by somebody else.
    if in_main_thread and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def loaded() -> None:
    """From now on Ctrl-C is an exception again."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(number: int, frame: FrameType | None) -> None:
    os.write(2, b"autotune: interrupted before anything began\n")
    os._exit(INTERRUPTED)


# Only as the program itself: neither in a program that imports the package nor in its workers,
# which have the same sys.argv.
if PurePath("".join(sys.orig_argv[1:2])).stem == "autotune":
    watch()
