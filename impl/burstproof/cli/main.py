"""The ``burstproof`` command: parse and dispatch; ``burstproof.door`` turns errors into messages and exit codes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from importlib import import_module

from burstproof.device.faults import translated
from burstproof.door import guarded, refuse_bare_dashes
from burstproof.errors import BurstproofError, ExitCode


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments without the program's name; those of the process by default.

    Returns
    -------
    int
        0 done, 1 a trace or a random case disagrees, 2 an error that nobody foresaw, 3 this machine lacks what was
        asked for, 4 an input or the usage is wrong, 130 interrupted, 141 the reader of standard output is gone,
        143 ended by SIGTERM, 129 by SIGHUP.
    """
    return guarded("burstproof", lambda: _dispatch(argv))


def _dispatch(argv: Sequence[str] | None) -> int:
    """Parse and run one subcommand; ``--help`` and ``--version`` end here.

    Only ``run`` is for several ranks. Whatever else a launcher starts, its first process does and says alone.
    """
    from burstproof.cli.arguments import build_parser
    from burstproof.cli.cluster import enter_rank, is_later_rank, silent

    later_rank = is_later_rank()
    try:
        with silent() if later_rank else nullcontext():
            refuse_bare_dashes(sys.argv[1:] if argv is None else argv)
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
    return int(translated(getattr(import_module(f"burstproof.cli.{home}"), name))(options))


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
