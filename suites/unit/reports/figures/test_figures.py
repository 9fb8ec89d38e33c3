"""The figures of the report: a module in the folder is all that a new one takes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from reports import figures
from reports.figures import all_figures
from reports.html import render
from suites.support.report_page import Page
from suites.support.sample_record import sample_record

pytestmark = pytest.mark.requirement("RE-3")

EXTRA = """
from reports.drawing import Figure

FIGURE = Figure({place}, lambda record: [record.run_id, "<b>"], "<p>Drawn of {{{{ chart }}}}, place {place}.</p>")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A second folder of figures."""
    monkeypatch.setattr(figures, "__path__", [*figures.__path__, str(tmp_path)])
    for name in ("extra_one", "extra_two"):
        monkeypatch.delitem(sys.modules, f"reports.figures.{name}", raising=False)
    return tmp_path


def test_a_module_in_the_folder_is_a_figure_of_the_report(folder: Path) -> None:
    """Two more figures stand at their places, escaped, around those that are there."""
    record = sample_record()
    before = all_figures()
    (folder / "extra_one.py").write_text(EXTRA.format(place=1))
    (folder / "extra_two.py").write_text(EXTRA.format(place=1000))
    assert all_figures()[1:-1] == before
    page = render(record)
    Page(page)
    first, last = (page.index(f"<p>Drawn of {record.run_id}, place {place}.</p>") for place in (1, 1000))
    assert page.index('id="latency"') < first < page.index("Figures against their limits") < last
    assert "<p>Drawn of &lt;b&gt;, place 1.</p>" in page


def test_a_module_without_a_figure_is_an_error(folder: Path) -> None:
    (folder / "extra_one.py").write_text("figure = None\n")
    with pytest.raises(AttributeError, match="FIGURE"):
        all_figures()


def test_places_are_distinct() -> None:
    places = [figure.place for figure in all_figures()]
    assert places == sorted(set(places))


def test_a_record_without_figures_draws_nothing() -> None:
    assert [figure.charts(sample_record(gpu=False)) for figure in all_figures() if figure.place >= 30] == [()] * 3
