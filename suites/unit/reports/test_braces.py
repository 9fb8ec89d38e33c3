"""Lists of texts in short stand for the texts and for nothing else."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.braces import braced

pytestmark = pytest.mark.requirement("RE-3")


def expanded(text: str) -> list[str]:
    """What a text with braces stands for."""
    parts = [part[1:-1].split(" | ") if part[0] == "{" else [part] for part in re.findall(r"\{[^}]*\}|[^{]+", text)]
    return ["".join(chosen) for chosen in itertools.product(*parts)]


@pytest.mark.parametrize(
    ("texts", "short"),
    [
        (["a-1", "a-2", "b"], ("a-{1 | 2}", "b")),
        (["a-1", "b-2", "b-1", "a-2"], ("{a | b}-{1 | 2}",)),
        (["a-1", "b-1", "c-2"], ("{a | b}-1", "c-2")),
        (["a", "b"], ("{a | b}",)),
        (["a-b-1", "a-b-2"], ("a-b-{1 | 2}",)),
        ([""], ("",)),
        ([], ()),
    ],
)
def test_first_parts_with_the_same_last_parts_are_one_text(texts: list[str], short: tuple[str, ...]) -> None:
    assert braced(texts, "-") == short


@given(st.lists(st.text("ab-", min_size=1, max_size=5), unique=True, max_size=12))
def test_nothing_is_lost_and_nothing_added(texts: list[str]) -> None:
    found = [one for text in braced(texts, "-") for one in expanded(text)]
    assert sorted(found) == sorted(texts)
