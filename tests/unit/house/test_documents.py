"""The documents hold together: links lead somewhere, no page is left out, every component has its line."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.check

REPOSITORY = Path(__file__).resolve().parents[3]
DOCS = REPOSITORY / "docs"
PAGES = sorted([*REPOSITORY.glob("*.md"), *DOCS.rglob("*.md"), *(REPOSITORY / "charts").rglob("*.md")])
ROOTS = ("db", "operator", "pipeline", "reconcilers")


def links(page: Path) -> list[str]:
    """Where the page's links lead, those into the world left out; what is quoted as code is no link."""
    found = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", page.read_text(encoding="utf-8")))
    return [each for each in found if not each.startswith(("http://", "https://", "#"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_every_link_leads_somewhere(page: Path) -> None:
    """To a file of the repository."""
    dead = [each for each in links(page) if not (page.parent / each.partition("#")[0]).exists()]
    assert dead == []


def test_the_readme_leads_to_every_page() -> None:
    """A page that nobody finds is not there."""
    named = {(REPOSITORY / each).resolve() for each in links(REPOSITORY / "README.md")}
    assert {page for page in DOCS.glob("*.md") if page not in named} == set()


def test_the_architecture_names_every_component_and_nothing_else() -> None:
    """Whoever looks for a component's code finds it in one table."""
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    folder, gone, named = Path(), [], set()
    for piece in re.findall(r"`([a-z]+/[a-z_./]*|[a-z_]+\.py)`", text.partition("## From component to file")[2]):
        roots = [base for base in (REPOSITORY, folder, folder.parent) if (base / piece).exists()]
        if not roots:
            gone.append(piece)
            continue
        folder = (roots[0] / piece).parent if piece.endswith(".py") else roots[0] / piece
        named.add(folder.relative_to(REPOSITORY))
    assert gone == []
    packages = {
        initial.parent.relative_to(REPOSITORY)
        for root in ROOTS
        for initial in REPOSITORY.glob(f"{root}/baton/*/__init__.py")
    }
    assert {each for each in packages if each not in named} == set()


def test_make_leaves_standard_output_to_the_programs() -> None:
    """`make demo ARGS=--json` is one JSON value also where the environment has to be made first."""
    lines = (REPOSITORY / "Makefile").read_text(encoding="utf-8").splitlines()
    telling = [each for each in lines if re.match(r'\t@echo "installing', each)]
    assert telling
    assert [each for each in telling if not each.endswith(">&2")] == []


def test_every_test_that_a_page_names_is_there() -> None:
    """What a page calls proven is proven by a test that exists."""
    gone = []
    for page in DOCS.rglob("*.md"):
        for path, name in re.findall(
            r"`((?:unit|integration|chaos)/[\w/]+\.py)::(\w+)`", page.read_text(encoding="utf-8")
        ):
            file = REPOSITORY / "tests" / path
            if not file.exists() or f"def {name}(" not in file.read_text(encoding="utf-8"):
                gone.append(f"{page.name}: {path}::{name}")
    assert gone == []
