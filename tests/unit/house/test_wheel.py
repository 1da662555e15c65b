"""The built wheel: complete, and usable without the sources."""

import json
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[3]
_NO_ROOTS = {"build", "charts"}
ROOTS = [folder for folder in REPOSITORY.iterdir() if (folder / "baton").is_dir() and folder.name not in _NO_ROOTS]


def run(*command: str | Path, cwd: Path = REPOSITORY) -> str:
    """A command's output; its failure is the test's."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the sources as they stand."""
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder)
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_every_module(wheel: Path) -> None:
    """Each file under a root's `baton` is in the wheel, and nothing else but metadata."""
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    wanted = {
        str(path.relative_to(root))
        for root in ROOTS
        for path in (root / "baton").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert inside == wanted


def test_the_wheel_works_without_the_sources(wheel: Path, tmp_path: Path) -> None:
    """Every package imports from an installed wheel, even when started in the repository's folder."""
    python = tmp_path / "venv" / "bin" / "python"
    uv = Path(sys.executable).with_name("uv")
    run(uv, "venv", "--quiet", "--python", sys.executable, tmp_path / "venv")
    run(uv, "pip", "install", "--quiet", "--offline", "--no-deps", "--python", python, wheel)
    # The dependencies are those of this environment. A path in a .pth file does not bring that
    # folder's own .pth files with it, so the editable sources stay out.
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    packages = sorted(
        f"baton.{package.name}"
        for root in ROOTS
        for package in (root / "baton").iterdir()
        if (package / "__init__.py").exists()
    )
    code = f"import importlib, json, baton; [importlib.import_module(n) for n in {packages}]; print(json.dumps(list(baton.__path__)))"
    assert json.loads(run(python, "-c", code)) == [str(site / "baton")]
