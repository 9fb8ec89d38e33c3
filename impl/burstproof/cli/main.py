"""The door of the ``burstproof`` command: parse, dispatch, and turn every error into one message and an exit code."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from importlib import import_module

from burstproof.errors import BurstproofError, ExitCode

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it (128 + SIGINT)."""

PIPE_CLOSED = 141
"""Exit code when the reader of standard output went away, as shells have it (128 + SIGPIPE)."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments without the program's name; those of the process by default.

    Returns
    -------
    int
        0 done, 1 a trace or a random case disagrees, 3 this machine lacks what was asked for, 4 an input or the usage
        is wrong, 130 interrupted, 141 the reader of standard output is gone.
    """
    _accept_any_character()
    try:
        code = int(_dispatch(argv))
        sys.stdout.flush()
        return code
    except BurstproofError as error:
        return _fail(str(error), error.exit_code)
    except BrokenPipeError:
        _silence_stdout()
        return PIPE_CLOSED
    except KeyboardInterrupt:
        return _fail("interrupted", INTERRUPTED)
    except MemoryError as error:
        reason = " ".join(str(error).split()) or "allocation failed"
        return _fail(f"not enough memory ({reason}). Use a smaller network", ExitCode.INVALID_ENVIRONMENT)
    except OSError as error:
        return _fail(f"{error}. Check the path and the space there", ExitCode.INVALID_ENVIRONMENT)


def _dispatch(argv: Sequence[str] | None) -> int:
    """Parse and run one subcommand; ``--help`` and ``--version`` end here.

    Only ``run`` is for several ranks. Whatever else a launcher starts, its first process does and says alone.
    """
    from burstproof.cli.arguments import build_parser
    from burstproof.cli.cluster import enter_rank, is_later_rank, silent

    later_rank = is_later_rank()
    try:
        with silent() if later_rank else nullcontext():
            options = build_parser().parse_args(argv)
    except SystemExit as end:
        return int(end.code or 0)
    except BurstproofError:
        if not later_rank:
            raise
        return ExitCode.PASS
    if later_rank and options.command != "run":
        return ExitCode.PASS
    if options.command == "run":
        enter_rank(options)
    home, name = _COMMANDS[options.command]
    return int(getattr(import_module(f"burstproof.cli.{home}"), name)(options))


_COMMANDS = {
    "run": ("run", "run"),
    "verify": ("verify", "verify"),
    "fuzz": ("fuzz", "fuzz"),
    "convert": ("convert", "convert"),
    "info": ("info", "info"),
    "train": ("train", "train_text"),
    "compile": ("compile", "compile_file"),
}
"""Module of ``cli`` and function of each subcommand."""


def _fail(message: str, code: int) -> int:
    """Say ``message`` on standard error."""
    print(f"burstproof: error: {message}", file=sys.stderr)
    return int(code)


def _accept_any_character() -> None:
    """Let names that the terminal's encoding lacks be printed with a substitute."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _silence_stdout() -> None:
    """Point standard output at nothing, so that the interpreter's last flush does not complain."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        sys.stdout = io.StringIO()
