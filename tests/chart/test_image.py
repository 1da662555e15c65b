"""What the image is made of."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from support.charts.places import CHART, REPOSITORY

DOCKERFILE = REPOSITORY / "Dockerfile"


@pytest.mark.check
def test_the_image_is_linted() -> None:
    """Hadolint finds nothing."""
    program = Path(sys.executable).with_name("hadolint")
    done = subprocess.run((program, str(DOCKERFILE)), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.check
def test_what_is_copied_reaches_the_build() -> None:
    """What .dockerignore lets through is what the Dockerfile asks for, and nothing else is sent."""
    asked = {
        source
        for line in re.findall(r"^COPY (?!--from)(.*) \S+$", DOCKERFILE.read_text(encoding="utf-8"), re.MULTILINE)
        for source in line.split()
    }
    allowed = {
        line.removeprefix("!")
        for line in (REPOSITORY / ".dockerignore").read_text(encoding="utf-8").splitlines()
        if line.startswith("!")
    }
    assert {"requirements/*.txt" if each.startswith("requirements/") else each for each in asked} == allowed
    assert all((REPOSITORY / each).exists() for each in asked)


@pytest.mark.check
def test_versions_agree() -> None:
    """Of the package, the chart, and the image by itself."""
    package = re.search(
        r'^version = "(.*)"$', (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE
    )
    image = re.search(r"^ARG VERSION=(.*)$", DOCKERFILE.read_text(encoding="utf-8"), re.MULTILINE)
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert package is not None
    assert image is not None
    assert package[1] == image[1] == chart["appVersion"] == chart["version"]


@pytest.mark.check
def test_the_image_runs_as_the_chart_says() -> None:
    """The same account, which is not root."""
    user = re.search(r"^USER (\d+):(\d+)$", DOCKERFILE.read_text(encoding="utf-8"), re.MULTILINE)
    assert user is not None
    context = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))["defaults"]["podSecurityContext"]
    assert [int(user[1]), int(user[2])] == [context["runAsUser"], context["runAsGroup"]]
    assert int(user[1]) > 0
