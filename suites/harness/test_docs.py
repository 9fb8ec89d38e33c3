"""README and docs: what they name exists, and what they show works as written."""

from __future__ import annotations

import itertools
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from burstproof.cli.arguments import build_parser
from burstproof.config import Configuration, load_configuration
from reports.values.requirements import load_requirements
from stages.bootstrap import session_commands
from stages.plan import STAGES

pytestmark = pytest.mark.requirement("RE-3", "BE-18")

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
_IN_FORCE_IF_SET = ("gpu_min_neurons", "gpu_min_firing_rate")
"""Keys that change what is chosen as soon as a file has them, so that README shows them as comments."""
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]
NOTES = [ROOT / f"{name}.md" for name in ("CONTRIBUTING", "CHANGELOG", "SECURITY")]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MODULE_FOLDERS = (
    "",
    *(f"impl/burstproof{room}" for room in ("", "/engine", "/engine/cuda", "/engine/wgpu", "/tensor")),
    "hardware",
)
LONGEST = {README: 200, ROOT / "CONTRIBUTING.md": 120, ROOT / "CHANGELOG.md": 400}


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def blocks(page: Path, *languages: str) -> list[str]:
    return [body for language, body in FENCE.findall(text_of(page)) if language in languages]


def commands(page: Path) -> Iterator[list[str]]:
    """Every command line of a page's shell blocks, without comments and prompts."""
    for body in blocks(page, "sh", "console"):
        lines = body.replace("\\\n", " ").splitlines()
        if body.startswith("$ "):
            lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        yield from filter(None, (shlex.split(line, comments=True) for line in lines))


def inline_code(page: Path) -> list[str]:
    return re.findall(r"`([^`\n]+)`", FENCE.sub("", text_of(page)))


def all_pages() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("page", [*PAGES, *NOTES], ids=lambda page: page.name)


def test_a_page_for_every_room_that_needs_one() -> None:
    names = {page.stem for page in PAGES[1:]}
    assert names == {
        "architecture",
        "glossary",
        "api",
        "own-network",
        "network",
        "features",
        "engine",
        "cpu",
        "cuda",
        "delivery",
        "wgpu",
        "hardware",
        "stages",
        "running",
        "plans",
        "reports",
        "closed-loop",
        "comparison",
        "records",
        "compile",
        "training",
        "tensor",
        "sharding",
    }


@all_pages()
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)]+)\)", FENCE.sub("", text_of(page)))
    relative = [target.split("#")[0] for target in targets if not target.startswith("https://")]
    assert [target for target in relative if not (page.parent / target).exists()] == []


@all_pages()
def test_files_named_exist(page: Path) -> None:
    """A path in code font, from the checkout's root or from a room; patterns count if they match a file."""
    missing = []
    for name in inline_code(page):
        looks_like_file = re.fullmatch(r"[\w./*-]+(?:\.(?:py|toml|md|json|yml)|/)", name) is not None
        if looks_like_file and "/" in name and not name.startswith((".nox", "runs/")):
            found = any(list((ROOT / folder).glob(name.rstrip("/"))) for folder in MODULE_FOLDERS)
            missing += [] if found else [name]
    assert missing == []


@all_pages()
def test_files_in_commands_exist(page: Path) -> None:
    words = [word for command in commands(page) for word in command if word.startswith("suites/")]
    endings = ("", ".npz")
    assert [word for word in words if not any((ROOT / f"{word}{ending}").exists() for ending in endings)] == []


@all_pages()
def test_lines_and_pages_are_short(page: Path) -> None:
    lines = text_of(page).splitlines()
    assert len(lines) <= LONGEST.get(page, 100)
    assert [line for line in lines if len(line) > 120] == []


@all_pages()
def test_command_lines_of_burstproof_parse(page: Path) -> None:
    parser = build_parser()
    for command in commands(page):
        if command[0] == "burstproof":
            assert parser.parse_args(command[1:]).command == command[1]


def test_the_readme_shows_every_subcommand() -> None:
    shown = {command[1] for command in commands(README) if command[0] == "burstproof"}
    assert shown == {"run", "info", "convert", "verify", "fuzz", "compile", "train"}


@all_pages()
def test_sessions_named_exist(page: Path) -> None:
    for session in re.findall(r"(?:noxfile\.py|nox)(?: --no-venv)? -s (\w+)", text_of(page)):
        assert session_commands(session, [])


def test_the_two_doors_come_first() -> None:
    doors = [command for command in commands(README) if command[:2] == ["python3", "noxfile.py"]]
    assert [command[2:] for command in doors[:2]] == [["-s", "stages"], ["-s", "tests"]]


def test_stages_in_the_readme_are_those_of_the_plan() -> None:
    _, _, table = text_of(README).partition("| stage | title |")
    rows = re.findall(r"^\| (\w+) \| ([^|]+) \|", table.partition("\n\n")[0], re.MULTILINE)
    assert rows == [(stage.name, stage.title) for stage in STAGES]


@all_pages()
def test_requirement_ids_exist(page: Path) -> None:
    known = {row.id for row in load_requirements()}
    assert set(re.findall(r"\b(?:BE|MG|KL|TO|ST|RE)-\d+\b", text_of(page))) <= known


def test_the_configuration_shown_has_every_key_with_its_default(tmp_path: Path) -> None:
    (example,) = blocks(README, "toml")
    file = tmp_path / "feagi_configuration.toml"
    file.write_text(re.sub(r"(?m)^# (?=\w+ = )", "", example), encoding="utf-8")
    shown = load_configuration(file)
    defaults = {setting.key: setting.value for setting in Configuration().settings()}
    assert {setting.key: setting.value for setting in shown.settings()} == defaults
    assert all(setting.origin == f"file {file}" for setting in shown.settings())
    file.write_text(example, encoding="utf-8")
    left_out = [one.key for one in load_configuration(file).settings() if one.origin != f"file {file}"]
    assert left_out == [f"compute.auto_selection.{name}" for name in _IN_FORCE_IF_SET]


def test_the_python_example_runs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """On the reference, which gives the bits of every other backend and compiles nothing; docs/waves.svg is its."""
    (example,) = blocks(README, "python")
    assert 'open_engine(network, "cpu"' in example
    monkeypatch.chdir(tmp_path)
    exec(compile(example.replace('(network, "cpu"', '(network, "reference"'), "README.md", "exec"), {})
    shown = capsys.readouterr().out.splitlines()
    assert f"# {shown[0]}\n" in example
    assert any(line.startswith("synthetic 0") for line in shown)
    assert (tmp_path / "waves.svg").read_bytes() == (ROOT / "docs" / "waves.svg").read_bytes()


def test_git_ignores_what_the_commands_of_the_readme_write() -> None:
    """In a checkout; an unpacked archive has no ``.git``."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout of git")
    python = re.findall(r'bp\.raster\(recording, "([\w.]+)"', text_of(README))
    written = {*python, "wheels/"}
    for command in commands(README):
        for option, name in itertools.pairwise(command):
            endings = {"--record": (".npz", ".json"), "--raster": ("",), "--out": ("",)}.get(option, ())
            written |= {f"{name}{ending}" for ending in endings}
        written |= {command[3]} if command[:2] == ["burstproof", "convert"] else set()
    assert written >= {"first.npz", "first.svg", "waves.svg", "essential.bpnet", "compare.html"}
    done = subprocess.run(
        ["git", "check-ignore", *sorted(written)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert set(done.stdout.split()) == written


def test_the_pictures_are_small() -> None:
    assert 0 < (ROOT / "docs" / "report.png").stat().st_size < 250_000
    assert 0 < (ROOT / "docs" / "architecture.svg").stat().st_size < 50_000
    assert 0 < (ROOT / "docs" / "waves.svg").stat().st_size < 60_000


def test_the_picture_and_the_page_show_every_room() -> None:
    """The rooms are the folders of the package, the packages of the checkout and the command."""
    folders = {path.parent.name for path in (ROOT / "impl" / "burstproof").glob("*/__init__.py")}
    rooms = folders | {"hardware", "reports", "stages", "suites", "cli"}
    svg = ElementTree.parse(ROOT / "docs" / "architecture.svg").getroot()
    titles = {text for found in svg.iter("{http://www.w3.org/2000/svg}text") for text in (found.text or "").split(", ")}
    assert rooms <= titles
    assert rooms <= set(inline_code(ROOT / "docs" / "architecture.md"))
