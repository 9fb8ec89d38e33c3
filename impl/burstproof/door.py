"""The door of every command: output that cannot steer a terminal, and every error as one message and an exit code.

An error that nobody foresaw means that the command could not judge: exit code 2, never the 1 of a failed comparison.
"""

from __future__ import annotations

import io
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout, suppress
from functools import partial
from typing import NoReturn, TextIO, cast

from burstproof.errors import BurstproofError, ExitCode, InputError, visible
from burstproof.parsing import ExactParser
from burstproof.termination import Terminated

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it (128 + SIGINT)."""

SIGNALLED = 128
"""Exit code after a signal that asks to end, to which its number is added, as shells have it: 143 after SIGTERM."""

PIPE_CLOSED = 141
"""Exit code when the reader of standard output went away, as shells have it (128 + SIGPIPE)."""


class UsageParser(ExactParser):
    """Exits with the project's usage code, 4, where argparse says 2."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and exit."""
        self.print_usage(sys.stderr)
        self.exit(int(ExitCode.USAGE), f"error: {message}. {self.hint(message)}See {self.prog} --help\n")


def guarded(program: str, command: Callable[[], int], *, plain: bool = True) -> int:
    """The exit code of ``command``; whatever it raises is said on standard error as ``program: error: ...``.

    ``plain`` makes the control characters in what it prints visible; not for a command that moves the cursor itself.
    Where standard error cannot be written, what goes there is lost, and the exit code stays what it is.

    Returns
    -------
    int
        That of the command; of ``ExitCode`` that of an error of the package, 3 for a machine that lacks memory or space
        or refuses a file, 2 for an error that nobody foresaw; 130 interrupted, 141 the reader is gone, 143 ended by
        SIGTERM, 129 by SIGHUP.
    """
    _open_missing_streams()
    _escape_what_cannot_be_shown()
    try:
        with redirect_stderr(cast(TextIO, _Lossy(sys.stderr))):
            return _ended(program, command, plain=plain)
    finally:
        for name in ("stdout", "stderr"):
            _settle(name)


def _ended(program: str, command: Callable[[], int], *, plain: bool) -> int:
    """The exit code of ``command``, with what it raised said."""
    try:
        with visible_output() if plain else nullcontext():
            return _carried_out(command)
    except BurstproofError as error:
        return _fail(program, str(error), error.exit_code)
    except BrokenPipeError:
        return PIPE_CLOSED
    except Terminated as end:
        return _fail(program, f"ended by {end.number.name}", SIGNALLED + end.number)
    except KeyboardInterrupt:
        return _fail(program, "interrupted", INTERRUPTED)
    except MemoryError as error:
        reason = " ".join(str(error).split()) or "allocation failed"
        return _fail(program, f"not enough memory ({reason}). Use a smaller network", ExitCode.INVALID_ENVIRONMENT)
    except OSError as error:
        return _fail(program, f"{error}. Check the path and the space there", ExitCode.INVALID_ENVIRONMENT)
    except Exception as error:
        what = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        kept = _kept_traceback(program, error)
        return _fail(program, f"unexpected {what}. This is a fault of {program}: report it with {kept}", 2)


def _carried_out(command: Callable[[], int]) -> int:
    """The exit code of ``command``, once all that it printed is written."""
    try:
        code = int(command())
    except SystemExit:
        sys.stdout.flush()
        raise
    sys.stdout.flush()
    return code


def refuse_bare_dashes(arguments: Sequence[str]) -> None:
    """Refuse ``--option=--``, which argparse before Python 3.13 takes for an option with an empty list as its value."""
    for argument in arguments:
        if argument.startswith("--") and argument.endswith("=--"):
            raise InputError("an option without a value", got=argument, cure="See --help.")


def _fail(program: str, message: str, code: int) -> int:
    """Say ``message`` on standard error."""
    print(f"{program}: error: {visible(message)}", file=sys.stderr)
    return int(code)


def _kept_traceback(program: str, error: Exception) -> str:
    """The file that now holds the traceback, in words."""
    try:
        descriptor, path = tempfile.mkstemp(prefix=f"{program}-", suffix=".traceback.txt")
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
            traceback.print_exception(error, file=file)
    except OSError:
        traceback.print_exception(error)
        return "the traceback above"
    return f"the traceback in {path}"


def _open_missing_streams() -> None:
    """Point a standard stream that the caller closed at nothing: Python has ``None`` in its place."""
    nothing = partial(open, os.devnull, "w", encoding="utf-8", errors="replace")
    sys.stdout, sys.stderr = sys.stdout or nothing(), sys.stderr or nothing()


def _escape_what_cannot_be_shown() -> None:
    """Let characters that the encoding of standard output lacks be printed as escapes."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _settle(name: str) -> None:
    """Write what ``sys.<name>`` holds; else point it at nothing, or the interpreter's last flush exits with 120."""
    stream: TextIO = getattr(sys, name)
    try:
        stream.flush()
    except OSError:
        _silence(name, stream)
    except ValueError:
        return


def _silence(name: str, stream: TextIO) -> None:
    """Point ``sys.<name>`` at nothing."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except (OSError, ValueError):
        setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115


@contextmanager
def visible_output() -> Iterator[None]:
    """Within it, control characters in what goes to standard output are made visible: names come from files."""
    with redirect_stdout(cast(TextIO, _Visible(sys.stdout))):
        yield


class _Passing:
    """A text stream that passes everything on to another."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


class _Visible(_Passing):
    """Makes control characters visible."""

    def write(self, text: str) -> int:
        """Write ``text`` with its control characters made visible."""
        self._stream.write(visible(text))
        return len(text)


class _Lossy(_Passing):
    """Loses what cannot be written, as on a full disk or to a reader that is gone."""

    def write(self, text: str) -> int:
        """Write ``text``, if that is possible."""
        with suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Write what is held, if that is possible."""
        with suppress(OSError, ValueError):
            self._stream.flush()
