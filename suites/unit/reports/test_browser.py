"""The pages in a real browser: how long they are, on a phone, in the dark, on paper, and for a screen reader."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reports.command import main
from reports.html import render
from reports.store import load_run
from suites.support.browser import WITHOUT_AXE, WITHOUT_CHROMIUM, Browser, find_axe, find_chromium, printed_pages
from suites.support.sample_record import sample_record

pytestmark = [
    pytest.mark.thorough("a real browser draws each page in four ways"),
    pytest.mark.requirement("RE-3"),
    pytest.mark.skipif(find_chromium() is None, reason=WITHOUT_CHROMIUM),
    pytest.mark.xdist_group("browser"),
]

BASELINES = Path(__file__).parents[3] / "reports" / "baselines"
RUNS = sorted(path.parent.name for path in BASELINES.glob("*/record.json.gz"))
PAGES = ("report", "x4", "sample", "comparison", "history")
SCREEN, PHONE = 1440, 390
MOST_SCREENS = MOST_PRINTED = 10

WIDE = """[...document.querySelectorAll('body *')].filter(e => {
  const box = e.getBoundingClientRect();
  return box.width && box.right > innerWidth + 0.5 && !e.closest('.scroll, .skip, .cards thead');
}).map(e => e.tagName + '.' + e.getAttribute('class'))"""
"""Elements that reach beyond the right edge of the window, those in tables that scroll by themselves left out."""

SIDEWAYS = """[...document.querySelectorAll('.scroll')].filter(e => e.checkVisibility() &&
  e.scrollWidth > e.clientWidth + 1).map(e => e.getAttribute('aria-label'))"""
"""Tables that have to be scrolled sideways."""

SMALL = """[...document.querySelectorAll('body *')].filter(e => e.checkVisibility() &&
  [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())).filter(e => {
  const svg = e.closest('svg');
  const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
  return parseFloat(getComputedStyle(e).fontSize) * scale < 9;
}).map(e => e.tagName + ': ' + e.textContent.trim().slice(0, 40))"""
"""Elements whose own text is shown smaller than nine pixels."""

COLLIDING = """[...document.querySelectorAll('svg')].flatMap(svg => {
  const frame = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll('text')].map(e => [e.textContent, e.getBoundingClientRect()]);
  const cut = texts.filter(([, b]) => b.left < frame.left - 1 || b.right > frame.right + 1
    || b.top < frame.top - 1 || b.bottom > frame.bottom + 1).map(([text]) => 'cut: ' + text);
  const over = texts.flatMap(([text, a], i) => texts.slice(i + 1).filter(([, b]) => a.left < b.right - 1
    && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3).map(([other]) => text + ' on ' + other));
  return [...cut, ...over];
})"""
"""Labels of charts that are cut off or written over another."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser(str(find_chromium())) as opened:
        yield opened


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The pages that a user sees, each drawn from real records but one."""
    folder = tmp_path_factory.mktemp("pages")
    made = {name: folder / f"{name}.html" for name in PAGES}
    made["report"].write_text(render(load_run(BASELINES / "h200-acceptance")), encoding="utf-8")
    made["x4"].write_text(render(load_run(BASELINES / "h200-x4")), encoding="utf-8")
    made["sample"].write_text(render(sample_record()), encoding="utf-8")
    main(["compare", str(BASELINES / "h200"), str(BASELINES / "h200-acceptance"), "--out", str(made["comparison"])])
    main(["history", str(BASELINES), "--out", str(made["history"])])
    return made


@pytest.mark.parametrize("run", RUNS)
def test_a_real_report_is_ten_screens_and_ten_printed_pages(run: str, browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(render(load_run(BASELINES / run)), encoding="utf-8")
    assert browser.open(page, SCREEN, 900) == []
    assert 900 < browser.height() <= MOST_SCREENS * 900
    assert 1 < printed_pages(browser.pdf()) <= MOST_PRINTED


@pytest.mark.parametrize("page", ["comparison", "history"])
def test_comparison_and_history_are_ten_screens(page: str, browser: Browser, pages: dict[str, Path]) -> None:
    """Of a desk, of a phone, and ten printed pages."""
    for width, height in ((SCREEN, 900), (PHONE, 844)):
        assert browser.open(pages[page], width, height) == []
        assert height < browser.height() <= MOST_SCREENS * height
    assert 1 < printed_pages(browser.pdf()) <= MOST_PRINTED


def test_performance_is_on_the_first_screen(browser: Browser, pages: dict[str, Path]) -> None:
    """Verdict, counts, and how many times as fast as the best other program; nothing of it needs scrolling."""
    browser.open(pages["report"], SCREEN, 900)
    bottoms = browser.evaluate("[...document.querySelectorAll('.tiles li')].map(e => e.getBoundingClientRect().bottom)")
    assert isinstance(bottoms, list)
    assert len(bottoms) == 8
    assert browser.evaluate("document.querySelector('p [href=\"#not-run\"]').getBoundingClientRect().bottom < 900")
    assert max(bottoms) <= 900
    assert "3.2× the best other" in str(browser.evaluate("document.querySelector('.tiles').innerText"))


def test_a_phone_begins_with_the_verdict_whether_it_was_right_and_how_fast(
    browser: Browser, pages: dict[str, Path]
) -> None:
    browser.open(pages["report"], PHONE, 844)
    bottoms = browser.evaluate("[...document.querySelectorAll('.tiles li')].map(e => e.getBoundingClientRect().bottom)")
    assert isinstance(bottoms, list)
    assert sum(bottom <= 844 for bottom in bottoms) >= 2


@pytest.mark.parametrize("page", PAGES)
def test_a_phone_shows_it_without_scrolling_sideways(page: str, browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages[page], PHONE, 844)
    assert browser.evaluate("document.documentElement.scrollWidth") == PHONE
    assert browser.evaluate(WIDE) == []
    assert browser.evaluate(SMALL) == []
    if page in ("report", "x4", "sample"):
        assert browser.evaluate(SIDEWAYS) == []


@pytest.mark.parametrize("width", [SCREEN, PHONE])
@pytest.mark.parametrize("page", PAGES)
def test_labels_of_charts_fit(page: str, width: int, browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages[page], width)
    assert browser.evaluate(COLLIDING) == []


@pytest.mark.skipif(find_axe() is None, reason=WITHOUT_AXE)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("page", PAGES)
def test_axe_finds_nothing(page: str, dark: bool, browser: Browser, pages: dict[str, Path]) -> None:
    """Contrast, order of headings, names, roles and tables; of the sample everything that is folded as well.

    In the dark nothing changes but colours.
    """
    browser.open(pages[page], SCREEN, dark=dark)
    if page == "sample":
        browser.evaluate("document.querySelectorAll('details').forEach(e => { e.open = true })")
    script = find_axe()
    assert script is not None
    assert browser.axe(script, ["color-contrast"] if dark else []) == []


def test_axe_would_find_something(browser: Browser, tmp_path: Path) -> None:
    """The same report in pale ink, and a heading too deep, are told."""
    script = find_axe()
    if script is None:
        pytest.skip(WITHOUT_AXE)
    page = tmp_path / "pale.html"
    text = render(sample_record()).replace("--soft: #56606b", "--soft: #c8ccd0").replace("h3>", "h5>")
    page.write_text(text, encoding="utf-8")
    browser.open(page, SCREEN)
    assert {finding.partition(":")[0] for finding in browser.axe(script)} >= {"color-contrast", "heading-order"}


def test_dark_is_dark_and_paper_is_white(browser: Browser, pages: dict[str, Path]) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    grounds = []
    for dark, media in (False, ""), (True, ""), (True, "print"):
        browser.open(pages["report"], SCREEN, dark=dark, media=media)
        grounds.append(browser.evaluate(ground))
    assert grounds == ["rgb(251, 251, 249)", "rgb(20, 23, 26)", "rgb(255, 255, 255)"]


def test_what_is_folded_opens_where_a_link_leads(browser: Browser, pages: dict[str, Path]) -> None:
    """A requirement named above leads to its row in the folded matrix."""
    browser.open(pages["report"], SCREEN)
    shown = "document.getElementById('BE-4').checkVisibility({contentVisibilityAuto: true})"
    folded = "document.getElementById('BE-4').closest('details').open"
    assert browser.evaluate(folded) is False
    browser.evaluate("location.hash = 'BE-4'")
    assert browser.evaluate(f"new Promise(done => setTimeout(() => done({folded} && {shown}), 100))") is True
