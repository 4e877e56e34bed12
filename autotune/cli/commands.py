"""How every command ends: exit codes, and errors as people want to read them."""

from __future__ import annotations

import functools
import signal
import socket
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from types import FrameType
from typing import Annotated, ParamSpec

import typer
from rich.markup import escape

from autotune.cli.output import discard_output, only_documents, set_up_logging, write_error
from autotune.errors import AutotuneError, StorageRefused, Unsupported
from autotune.plugins import BrokenPlugin
from autotune.study.signals import Terminated

DONE, FAILED, WRONG_USE, INTERRUPTED, TERMINATED = 0, 1, 2, 130, 143

DEFAULT_STORAGE = "autotune.db"


class NothingFound(AutotuneError):
    """A study has nothing yet of what was asked for properly."""


_NOT_TO_BE_DONE = (StorageRefused, Unsupported, BrokenPlugin, NothingFound)
"""Errors of what was asked for properly."""

P = ParamSpec("P")

Storage = Annotated[
    str,
    typer.Option(
        help="Where studies are kept: a file, or postgresql+psycopg://user@host/database.",
        metavar="PATH|URL",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Every detail in the log, and tracebacks of errors.")
]
Study = Annotated[str, typer.Argument(metavar="STUDY", help="An installed study, or FILE.py:ATTR.")]
StoredStudy = Annotated[
    str | None,
    typer.Argument(
        metavar="[STUDY]",
        help="A study in the storage; may be left out where there is only one.",
        show_default=False,
    ),
]
StudyOption = Annotated[
    str | None,
    typer.Option(
        "--study",
        metavar="STUDY",
        help="A study in the storage; may be left out where there is only one.",
        show_default=False,
    ),
]


def command(function: Callable[P, int | None]) -> Callable[P, None]:
    """Make a function a command: its result is the exit code, its errors are messages.

    Wrong use gives 2; what was asked for properly and could not be done gives 1; Ctrl-C 130 and
    SIGTERM 143. A traceback is shown for faults of the program, and with ``--verbose``.
    """

    @functools.wraps(function)
    def run(*arguments: P.args, **options: P.kwargs) -> None:
        verbose = bool(options.get("verbose"))
        set_up_logging(verbose=verbose)
        documents = only_documents() if options.get("json") else nullcontext()
        with documents:
            code = _exit_code(lambda: function(*arguments, **options), verbose=verbose)
        raise typer.Exit(code)

    run.__doc__ = escape(function.__doc__ or "")  # the help takes [name] for a style
    return run


def _exit_code(call: Callable[[], int | None], *, verbose: bool) -> int:
    try:
        return DONE if (code := call()) is None else code
    except AutotuneError as error:
        if verbose:
            traceback.print_exc()
        write_error(str(error))
        return FAILED if isinstance(error, _NOT_TO_BE_DONE) else WRONG_USE
    except KeyboardInterrupt as interrupt:
        write_error("interrupted; the same command goes on from here")
        return exit_code_of(interrupt)
    except BrokenPipeError:
        discard_output()
        return DONE


@dataclass(slots=True)
class Caught:
    """Which signals have arrived.

    Attributes:
        _receiver: Gets a byte for each, whoever handles it.
    """

    _receiver: socket.socket

    @property
    def exit_code(self) -> int:
        """What the shell expects after the last signal; of Ctrl-C where there was none."""
        try:
            received = self._receiver.recv(4096)
        except BlockingIOError:
            received = b""
        return TERMINATED if received.endswith(bytes([signal.SIGTERM])) else INTERRUPTED


@contextmanager
def signals() -> Iterator[Caught]:
    """Note the signals that arrive, and let SIGTERM be an exception as Ctrl-C is.

    A study that runs inside has handlers of its own and ends quietly; they do not tell which
    signal it was.
    """
    receiver, sender = socket.socketpair()
    receiver.setblocking(False)
    sender.setblocking(False)
    previous_fd = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
    previous = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield Caught(receiver)
    finally:
        signal.signal(signal.SIGTERM, previous)
        signal.set_wakeup_fd(previous_fd)


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated


def exit_code_of(interrupt: KeyboardInterrupt) -> int:
    """What the shell expects after Ctrl-C, or after SIGTERM."""
    return TERMINATED if isinstance(interrupt, Terminated) else INTERRUPTED
