"""The image as a container by itself: a root that cannot be written, no capability, no network, the image's own account."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

_FOLDER = {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev", "mode=1777"]}


@dataclass(frozen=True)
class Container:
    """What a container is made of."""

    root: Path
    """The files of the image."""
    settings: dict[str, Any]
    """What the image says about how it is run."""
    folder: Path
    """Where its description and its state are."""

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a program to its end; nothing but its standard output, error and code is left."""
        name = f"baton-{uuid4().hex[:12]}"
        bundle = self.folder / name
        bundle.mkdir()
        subprocess.run(("runc", "spec", "--bundle", str(bundle)), check=True)
        file = bundle / "config.json"
        file.write_text(json.dumps(self._described(json.loads(file.read_text()), command)), encoding="utf-8")
        arguments = ("runc", "--root", str(self.folder / "state"), "run", "--bundle", str(bundle), name)
        return subprocess.run(
            arguments, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100, check=False
        )

    def _described(self, spec: dict[str, Any], command: tuple[str, ...]) -> dict[str, Any]:
        account, group = (int(each) for each in self.settings["User"].split(":"))
        spec["process"] |= {
            "terminal": False,
            "user": {"uid": account, "gid": group},
            "args": list(command),
            "env": self.settings["Env"],
            "cwd": self.settings["WorkingDir"],
            "capabilities": {kind: [] for kind in ("bounding", "effective", "permitted")},
            "noNewPrivileges": True,
        }
        spec["root"] = {"path": str(self.root), "readonly": True}
        spec["mounts"].append(_FOLDER)
        return spec
