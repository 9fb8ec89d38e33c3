"""Command lines as every command reads them: no abbreviations, and a hint where a word is unknown."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Mapping
from typing import Any


class ExactParser(argparse.ArgumentParser):
    """A parser that takes options by their full names only, and knows what a mistyped word may have been.

    Attributes
    ----------
    commands : mapping of str to ExactParser
        The parsers of its subcommands by name, if it has any.
    """

    commands: Mapping[str, ExactParser] = {}

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, **settings)
        self._asked: list[str] = []

    def add_subparsers(self, **settings: Any) -> Any:
        """As argparse has it; ``commands`` will have what is added."""
        action = super().add_subparsers(**settings)
        self.commands = action.choices
        return action

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """As argparse has it, but a command refuses what it does not know itself, and so names its own help."""
        self._asked = list(sys.argv[1:] if args is None else args)
        known, unknown = super().parse_known_args(args, namespace)
        if unknown and not self.commands:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return known, unknown

    def hint(self, message: str) -> str:
        """What may have been meant where argparse says ``message``: a sentence and a space, or nothing."""
        unknown = re.match(r"unrecognized arguments: (--[\w-]+)", message)
        if unknown is not None:
            return self._option_like(unknown[1])
        choice = re.search(r"invalid choice: '([^']*)'", message)
        if choice is None or choice[1] in self.commands:
            return ""
        asked = [word for word in self._asked if word in self.commands]
        if asked and self._asked[0].startswith("-"):
            return f"Put the command first: {self.prog} {asked[0]} ... "
        return _did_you_mean(choice[1], list(self.commands))

    def _option_like(self, word: str) -> str:
        parsers = (self, *self.commands.values())
        known = re.findall(r"--[\w-]+", "".join(one.format_help() for one in parsers))
        return "Write it after the command. " if word in known else _did_you_mean(word, known)


def _did_you_mean(word: str, known: list[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1)
    return f"Did you mean {near[0]}? " if near else ""
