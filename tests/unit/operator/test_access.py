"""How the API server is reached."""

import base64
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import yaml

from baton.operator.access import AccessMissing, from_kubeconfig


def kubeconfig(file: Path, *, user: dict[str, str], cluster: dict[str, str] | None = None) -> Path:
    """A kubeconfig with everything written in it."""
    content = {
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:6443", **(cluster or {})}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    file.write_text(yaml.safe_dump(content))
    return file


def written(text: str) -> str:
    """As it stands in a kubeconfig."""
    return base64.b64encode(text.encode()).decode()


def test_a_key_that_stands_in_a_kubeconfig_never_reaches_a_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is used from memory, so that no end of the process, however sudden, leaves it behind; and no child sees it."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    user = {"client-certificate-data": written("a certificate"), "client-key-data": written("a key")}
    found = from_kubeconfig(kubeconfig(tmp_path / "config", user=user))
    assert found.key_file is not None
    assert found.certificate_file is not None
    for _ in range(2):  # it is read for each connection anew
        assert Path(found.key_file).read_text() == "a key"
        assert Path(found.certificate_file).read_text() == "a certificate"
    look = f"import os; print(os.path.exists({found.key_file!r}))"
    seen = subprocess.run([sys.executable, "-c", look], check=True, capture_output=True, text=True)
    assert seen.stdout.strip() == "False"
    assert [each.name for each in tmp_path.iterdir()] == ["config"]


def test_a_program_that_makes_credentials_is_not_run(tmp_path: Path) -> None:
    """It is said that it is not."""
    with pytest.raises(AccessMissing, match="another program"):
        from_kubeconfig(kubeconfig(tmp_path / "config", user={"exec": "x"}))
