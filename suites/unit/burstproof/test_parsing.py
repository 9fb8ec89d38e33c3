"""No parser of the project takes an abbreviation, and each knows what a slip may have been."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

import pytest

from burstproof.cli.arguments import build_parser
from burstproof.parsing import ExactParser
from reports.command import _parser as reports_parser
from stages.command import _parser as stages_parser
from stages.compare import _parser as compare_parser
from stages.plan import PLAN

pytestmark = pytest.mark.requirement("RE-2")


def _parsers() -> Iterator[argparse.ArgumentParser]:
    for parser in (build_parser(), reports_parser(), stages_parser(PLAN), compare_parser()):
        assert isinstance(parser, ExactParser)
        yield from (parser, *parser.commands.values())


@pytest.mark.parametrize("parser", [*_parsers()], ids=lambda parser: parser.prog)
def test_no_parser_takes_an_abbreviation(parser: argparse.ArgumentParser) -> None:
    assert not parser.allow_abbrev


def test_what_looks_like_a_command_before_it_is_told_from_a_slip(monkeypatch: pytest.MonkeyPatch) -> None:
    parser = ExactParser(prog="prog")
    parser.add_subparsers().add_parser("run")
    said: list[str] = []
    monkeypatch.setattr(parser, "error", lambda message: said.append(parser.hint(message)) or sys.exit(4))
    for words in (["--size", "9", "run"], ["rnu"], ["walk"], ["rnu", "run"]):
        with pytest.raises(SystemExit):
            parser.parse_args(words)
    monkeypatch.setattr(sys, "argv", ["prog", "--size", "9", "run"])
    with pytest.raises(SystemExit):
        parser.parse_args()
    first = "Put the command first: prog run ... "
    assert said == [first, "Did you mean run? ", "", "Did you mean run? ", first]
