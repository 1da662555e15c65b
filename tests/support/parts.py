"""Parts of the machine that some tests need, and what becomes of them where a part is absent."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from baton.embedded.binaries import debian_binaries


def _program(name: str, *places: str) -> Callable[[], bool]:
    return lambda: shutil.which(name) is not None or any(Path(place).exists() for place in places)


PARTS: dict[str, tuple[Callable[[], bool], str]] = {
    "root": (lambda: os.geteuid() == 0, "needs root"),
    "tesseract": (_program("tesseract"), "needs tesseract-ocr"),
    "clamd": (_program("clamd", "/usr/sbin/clamd"), "needs clamav-daemon"),
    "pgbouncer": (_program("pgbouncer", "/usr/sbin/pgbouncer"), "needs pgbouncer"),
    "promtool": (_program("promtool"), "needs prometheus, for its promtool"),
    "buildah": (_program("buildah"), "needs buildah"),
    "debootstrap": (_program("debootstrap", "/usr/sbin/debootstrap"), "needs debootstrap"),
    "containerd": (_program("containerd"), "needs containerd"),
    "cni": (lambda: Path("/usr/lib/cni/ptp").exists(), "needs containernetworking-plugins"),
    "iptables": (_program("iptables", "/usr/sbin/iptables"), "needs iptables"),
    "ipset": (_program("ipset", "/usr/sbin/ipset"), "needs ipset"),
    "conntrack": (_program("conntrack", "/usr/sbin/conntrack"), "needs conntrack"),
    "openssl": (_program("openssl"), "needs openssl"),
    "prometheus": (_program("prometheus"), "needs prometheus"),
    "runc": (_program("runc", "/usr/sbin/runc"), "needs runc"),
    "postgres15": (lambda: debian_binaries(15) is not None, "needs postgresql-15"),
}


def needs(*parts: str) -> pytest.MarkDecorator:
    """Mark a test that is skipped where one of the parts is absent, and fails there when CI=true."""
    unknown = set(parts) - PARTS.keys()
    if unknown:
        raise ValueError(f"unknown parts: {sorted(unknown)}")
    return pytest.mark.needs(*parts)


def require(*parts: str) -> None:
    """Go on only where the parts are present: skip the running test, or fail it when CI=true."""
    for part in parts:
        present, reason = PARTS[part]
        if not present():
            without(reason)


def without(reason: str) -> NoReturn:
    """Skip the running test for a plain reason; in CI nothing may be skipped unseen, so there it fails."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason}, and in CI nothing is skipped", pytrace=False)
    pytest.skip(reason)
