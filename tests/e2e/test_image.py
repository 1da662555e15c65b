"""The image by itself: what is in it, and every way to start it."""

import re
from pathlib import Path
from typing import Any

import pytest

from baton.cli import main
from e2e.bed.containers import Container
from e2e.bed.images import Images
from support.parts import needs

pytestmark = [pytest.mark.e2e, needs("root", "runc"), pytest.mark.timeout(600)]

#: Draws a sentence and reads it, as the extraction worker has a scanned page read.
_READING = """
import subprocess
from PIL import Image, ImageDraw, ImageFont
page = Image.new("L", (1200, 200), 255)
ImageDraw.Draw(page).text((40, 60), "Notice of termination", font=ImageFont.load_default(60), fill=0)
page.save("/tmp/page.png")
subprocess.run(["tesseract", "/tmp/page.png", "stdout", "--psm", "7"], check=True)
"""


@pytest.fixture(scope="module")
def settings(images: Images) -> dict[str, Any]:
    """What the image says of itself."""
    return images.settings()


@pytest.fixture
def container(image_root: Path, settings: dict[str, Any], tmp_path: Path) -> Container:
    """A container of it, confined as the chart confines it."""
    return Container(image_root, settings["config"], tmp_path)


def test_it_is_small(images: Images) -> None:
    """Under 450 MB with the reading of scanned pages."""
    assert images.size() < 450e6


def test_it_says_what_it_is(settings: dict[str, Any]) -> None:
    """By the labels that registries show, and it never runs as root."""
    prefix = "org.opencontainers.image"
    labels = settings["config"]["Labels"]
    assert labels[f"{prefix}.title"] == "baton"
    assert labels[f"{prefix}.licenses"] == "Apache-2.0"
    assert {f"{prefix}.version", f"{prefix}.revision", f"{prefix}.description"} <= labels.keys()
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", settings["config"]["User"])


def test_nothing_is_in_it_that_only_building_needs(image_root: Path) -> None:
    """No compiler, no installer, no lists and caches of packages, no documents, no source tree."""
    programs = {each.name for folder in ("usr/bin", "opt/baton/bin") for each in (image_root / folder).iterdir()}
    assert not {each for each in programs if re.match(r"(gcc|cc|g\+\+|make|pip|pip3|git|curl|wget)$", each)}
    site = image_root / "opt/baton/lib/python3.11/site-packages"
    assert not [
        each for each in site.iterdir() if re.match(r"(pip|setuptools|wheel|pytest|kubernetes_validate)\b", each.name)
    ]
    for folder in ("var/lib/apt/lists", "var/cache", "usr/share/doc", "usr/share/man", "usr/share/locale", "source"):
        place = image_root / folder
        assert not place.exists() or not [each for each in place.rglob("*") if each.is_file()], folder


def test_it_is_confined(container: Container) -> None:
    """Its account has no capability, and can write to its folder for temporary files alone."""
    done = container.run("grep", "-E", "^(Uid|Cap|NoNewPrivs)", "/proc/self/status")
    assert set(re.findall(r"Cap\w+:\s(\w+)", done.stdout)) == {"0" * 16}
    assert re.search(r"Uid:\t10001\t10001\t10001\t10001", done.stdout)
    tried = "for place in / /opt/baton /usr /var /etc; do touch $place/trace && echo $place; done; touch /tmp/trace && echo done"
    assert container.run("bash", "-c", tried).stdout == "done\n"


def test_every_command_starts(container: Container) -> None:
    """Each says how it is used; the demo says what it would need."""
    loop = "for each; do baton $each --help >/tmp/told 2>&1 || { echo $each; cat /tmp/told; }; done"
    names = [each for each in main._COMMANDS if each != "demo"]
    done = container.run("bash", "-c", loop, "loop", *names)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    demo = container.run("baton", "demo")
    assert demo.returncode != 0
    assert "Traceback" not in demo.stderr
    assert "demo" in demo.stderr


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (("baton", "relay", "--lane", "ingest"), "DATABASE_URL"),
        (("baton", "relay", "--lane", "registrar"), "DATABASE_URL"),
        (("baton", "extractor"), "DATABASE_URL"),
        (("baton", "registrar"), "DATABASE_URL"),
        (("baton", "settler"), "DATABASE_URL"),
        (("baton", "agent"), "BATON_AGENT_TOKEN"),
        (("baton", "reconcile"), "DATABASE_URL"),
        (("baton", "migrate"), "DATABASE_URL"),
        (("python", "-m", "baton.operator"), "KUBECONFIG"),
    ],
    ids=lambda found: "-".join(found) if isinstance(found, tuple) else "",
)
def test_every_workload_says_what_it_lacks(container: Container, command: tuple[str, ...], told: str) -> None:
    """Started with nothing, it ends at once with a sentence and no traceback."""
    done = container.run(*command)
    assert done.returncode not in (0, 137)
    assert told in done.stderr + done.stdout
    assert "Traceback" not in done.stderr


def test_the_plugin_starts(container: Container) -> None:
    """As kubectl would start it."""
    done = container.run("kubectl-baton", "--help")
    assert done.returncode == 0, done.stderr
    assert "redrive" in done.stdout


def test_scanned_pages_are_read(container: Container) -> None:
    """By the tesseract in it, with the data that it needs."""
    done = container.run("python", "-c", _READING)
    assert done.returncode == 0, done.stderr
    assert "Notice of termination" in done.stdout
