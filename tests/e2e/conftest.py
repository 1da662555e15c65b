"""The image, once for the session."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.bed.images import Images
from support.parts import require


@pytest.fixture(scope="session")
def images() -> Images:
    """The store that holds the product's image, built from this tree."""
    require("root", "buildah", "debootstrap")
    images = Images()
    images.product()
    return images


@pytest.fixture(scope="session")
def image_root(images: Images) -> Iterator[Path]:
    """The files of the image."""
    with images.mounted() as root:
        yield root
