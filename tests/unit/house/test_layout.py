"""The layout: source roots, packages and their charters, sizes and names of modules."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.check

REPOSITORY = Path(__file__).parents[3]
PROJECT: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
TOOLS: dict[str, Any] = PROJECT["tool"]
ROOTS = {
    folder.name
    for folder in REPOSITORY.iterdir()
    # charts/baton is the chart of that name, and holds no modules
    if (folder / "baton").is_dir() and not folder.name.startswith((".", "build", "charts"))
}
LINES = 400
NAMELESS = {"utils", "util", "helpers", "helper", "common", "misc"}


def modules() -> Iterator[Path]:
    """Every module of the product."""
    for root in sorted(ROOTS):
        yield from sorted((REPOSITORY / root / "baton").rglob("*.py"))


def test_all_lists_of_roots_agree() -> None:
    """Build, checks and coverage all name the roots that are there."""
    build = TOOLS["hatch"]["build"]
    makefile = re.search(r"^ROOTS := (.*)$", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
    assert makefile is not None
    lists = {
        "hatch dev-mode-dirs": set(build["dev-mode-dirs"]),
        "hatch wheel": {name.removesuffix("/baton") for name in build["targets"]["wheel"]["packages"]},
        "hatch sdist": {name for name in build["targets"]["sdist"]["include"] if (REPOSITORY / name).is_dir()},
        "ruff": set(TOOLS["ruff"]["src"]) - {"tests"},
        "mypy": set(TOOLS["mypy"]["mypy_path"]) - {"tests"},
        "mypy files": set(TOOLS["mypy"]["files"]) - {"tests"},
        "coverage": set(TOOLS["coverage"]["run"]["source"]),
        "vulture": {name for name in TOOLS["vulture"]["paths"] if (REPOSITORY / name).is_dir()},
        "Makefile": set(makefile[1].split()),
    }
    assert lists == dict.fromkeys(lists, ROOTS)


def test_the_namespace_stays_a_namespace() -> None:
    """No root and no `baton` folder is a regular package: it would hide the other roots' shares, or a standard module."""
    for root in ROOTS:
        assert not (REPOSITORY / root / "__init__.py").exists()
        assert not (REPOSITORY / root / "baton" / "__init__.py").exists()
        assert not list((REPOSITORY / root / "baton").glob("*.py"))


def test_operator_is_the_standard_librarys() -> None:
    """From the repository's folder, `import operator` finds the standard library's."""
    found = subprocess.run(
        [sys.executable, "-c", "import operator, collections; print(operator.__file__)"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(REPOSITORY)},
    ).stdout
    assert REPOSITORY / "operator" not in Path(found.strip()).parents


def test_every_package_has_a_charter() -> None:
    """Every folder with modules is a package, whose docstring says what belongs in it."""
    # Alembic loads its versions as single files, by path.
    for folder in {module.parent for module in modules()} - {REPOSITORY / "db/baton/db/migrations/versions"}:
        initial = folder / "__init__.py"
        assert initial.exists(), f"{folder.relative_to(REPOSITORY)} has no __init__.py"
        assert ast.get_docstring(ast.parse(initial.read_text())), f"{initial.relative_to(REPOSITORY)} has no charter"


def test_every_component_stands_in_one_root() -> None:
    """No component is split over two roots."""
    names = [
        package.name
        for root in ROOTS
        for package in (REPOSITORY / root / "baton").iterdir()
        if (package / "__init__.py").exists()
    ]
    assert len(names) == len(set(names))


def test_modules_are_of_a_readable_size() -> None:
    """No module is longer than 400 lines, and none is named after nothing."""
    long = {str(m.relative_to(REPOSITORY)) for m in modules() if len(m.read_text().splitlines()) > LINES}
    assert not long
    assert not {str(m) for m in modules() if m.stem in NAMELESS or m.parent.name in NAMELESS}


def test_requirements_are_locked_and_name_no_registry() -> None:
    """Every pinned requirement carries hashes; no file says where packages are fetched from."""
    for locked in sorted((REPOSITORY / "requirements").glob("*.txt")):
        entries = re.sub(r"\\\n", " ", locked.read_text()).splitlines()
        pinned = [line for line in entries if line and not line.lstrip().startswith("#")]
        assert pinned
        for line in pinned:
            assert re.match(r"[a-z0-9.-]+(\[[a-z,]+\])?==\S+ .*--hash=sha256:", line), f"{locked.name}: {line[:60]}"
            assert "://" not in line
            assert "index" not in line.partition("==")[2].partition("--hash")[0]


def test_what_is_declared_is_what_is_pinned() -> None:
    """The dependencies of the package and of requirements/*.in are the same."""
    for group, declared in (
        ("run", PROJECT["project"]["dependencies"]),
        ("demo", PROJECT["project"]["optional-dependencies"]["demo"]),
        ("operator", PROJECT["project"]["optional-dependencies"]["operator"]),
    ):
        asked = {
            line
            for line in (REPOSITORY / "requirements" / f"{group}.in").read_text().splitlines()
            if line and not line.startswith(("#", "-r"))
        }
        assert asked - set(PROJECT["build-system"]["requires"]) == set(declared)
