"""The product's image, built from this tree on a base that is made here: ``python -m e2e.bed.images``.

Nothing is pulled. The base stands in for Debian's own slim one: the packages that every Debian has, without their
documents and translations.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.charts.places import REPOSITORY

SUITE = "bookworm"
BASE = f"localhost/baton-base:{SUITE}"
IMAGE = "localhost/baton:e2e"
PAUSE = "localhost/baton-pause:1"
"""Holds the namespaces of a pod."""
#: What Debian's slim images leave out, and what apt fetches anew.
_LEFT_OUT = (
    *(f"usr/share/{each}" for each in ("doc", "groff", "info", "linda", "lintian", "locale", "man")),
    *("var/cache/apt", "var/lib/apt/lists", "var/log"),
)
#: How dpkg is told to leave the same out of what is installed later.
_EXCLUDED = "".join(
    f"path-exclude /usr/share/{each}/*\n" for each in ("doc", "groff", "info", "lintian", "locale", "man")
)
#: Of the machine: its certificates and what it says to pip reach the build, and not the image.
_MACHINES_OWN = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pip.conf")


class Images:
    """A store of images, kept between runs so that only what changed is built again."""

    def __init__(self) -> None:
        root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        self.folder = Path(root) / "baton-tests" / "images"
        self.folder.mkdir(parents=True, exist_ok=True)

    def product(self) -> None:
        """Build the product's image from the working tree."""
        self._base()
        mounts = [each for file in _MACHINES_OWN if Path(file).exists() for each in ("-v", f"{file}:{file}:ro")]
        arguments = ("--layers", "--isolation", "chroot", "--build-arg", f"BASE={BASE}")
        self("bud", "--quiet", *arguments, *mounts, "--tag", IMAGE, str(REPOSITORY))

    def size(self) -> int:
        """Bytes of the product's image, as it lies on a node's disk."""
        with self.mounted() as root:
            told = subprocess.run(("du", "-sxb", str(root)), capture_output=True, text=True, check=True).stdout
        return int(told.split()[0])

    def settings(self) -> dict[str, object]:
        """What the product's image says about how it is run."""
        found: dict[str, object] = json.loads(self("inspect", "--type", "image", IMAGE))["OCIv1"]
        return found

    def archive(self, image: str, file: Path) -> Path:
        """Write an image into a file that a node can load."""
        if image == PAUSE:
            self._pause()
        self("push", "--quiet", "--disable-compression", image, f"oci-archive:{file}:{image}")
        return file

    def with_file(self, image: str, file: Path, place: str) -> None:
        """Make another image of the product's, with one file more or another one in its place."""
        container = self("from", "--pull-never", IMAGE).strip()
        try:
            self("copy", "--quiet", "--chmod", "0644", container, str(file), place)
            self("commit", "--quiet", container, image)
        finally:
            self("rm", container)

    @contextmanager
    def mounted(self) -> Iterator[Path]:
        """The product's files."""
        container = self("from", "--pull-never", IMAGE).strip()
        try:
            yield Path(self("mount", container).strip())
        finally:
            self("rm", container)

    def __call__(self, *arguments: str) -> str:
        """What buildah prints.

        :raises RuntimeError: it ended otherwise than with 0; its last words are in the message.
        """
        places = ("--root", str(self.folder / "storage"), "--runroot", str(self.folder / "run"))
        done = subprocess.run(("buildah", *places, *arguments), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"buildah {arguments[0]} failed\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout

    def _has(self, image: str) -> bool:
        return image in self("images", "--format", "{{.Name}}:{{.Tag}}").split()

    def _base(self) -> None:
        if self._has(BASE):
            return
        sys.stderr.write(f"making a base of Debian's {SUITE}, once; it takes a minute\n")
        with tempfile.TemporaryDirectory(prefix="base-", dir=self.folder) as scratch:
            root = Path(scratch) / "root"
            command = ("debootstrap", "--variant=minbase", "--include=ca-certificates", SUITE, str(root))
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise RuntimeError(f"debootstrap failed\n{done.stdout[-2000:]}")
            for each in _LEFT_OUT:
                shutil.rmtree(root / each, ignore_errors=True)
            for each in ("var/cache/apt/archives/partial", "var/lib/apt/lists/partial", "var/log"):
                (root / each).mkdir(parents=True)
            (root / "etc/dpkg/dpkg.cfg.d/slim").write_text(_EXCLUDED, encoding="utf-8")
            self._from_folder(BASE, root)

    def _pause(self) -> None:
        if self._has(PAUSE):
            return
        with tempfile.TemporaryDirectory(prefix="pause-", dir=self.folder) as scratch:
            root = Path(scratch) / "root"
            root.mkdir()
            program = shutil.which("catatonit")
            if program is None:
                raise RuntimeError("needs catatonit, to hold the namespaces of pods")
            shutil.copy(program, root / "catatonit")
            self._from_folder(PAUSE, root, "--entrypoint", '["/catatonit","-P"]')

    def _from_folder(self, image: str, root: Path, *settings: str) -> None:
        """An image of one layer."""
        container = self("from", "scratch").strip()
        try:
            self("add", "--quiet", container, str(root), "/")
            if settings:
                self("config", *settings, container)
            self("commit", "--quiet", container, image)
        finally:
            self("rm", container)


def main() -> None:
    """Build it, and say how large it is."""
    images = Images()
    images.product()
    sys.stdout.write(f"{IMAGE}: {images.size() / 1e6:.0f} MB, in {images.folder}\n")


if __name__ == "__main__":
    main()
