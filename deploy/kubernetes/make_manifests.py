"""`python -m deploy.kubernetes.make_manifests`: writes the manifests beside it, from the Helm chart with its defaults.

For those without Helm: what only Helm reads is left out, and the first start reads the same ConfigMap as the workers.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
CHART = HERE.parent / "helm" / "sfm-stream"
NAME = "sfm-stream"
HEAD = "# Made from deploy/helm/sfm-stream by `make manifests`; docs/kubernetes.md says how to apply it.\n"


def manifests(helm: str = "helm") -> dict[str, str]:
    """File name to its text. helm: the program."""
    call = [helm, "template", NAME, str(CHART), "--kube-version", "1.37.0", "--set", "firstStart=true"]
    text = subprocess.run(call, capture_output=True, text=True, check=True).stdout  # noqa: S603  # a call written here
    parts: dict[str, list[str]] = {"config.yaml": [], "first-start.yaml": [], "pipeline.yaml": []}
    for document in re.split(r"^---\n", text, flags=re.M):
        plain = _plain(document)
        is_first = f"\n  name: {NAME}-first-start" in plain
        if "\nkind: ConfigMap\n" in plain:
            if not is_first:
                parts["config.yaml"].append(plain)
        elif plain:
            parts["first-start.yaml" if is_first else "pipeline.yaml"].append(plain)
    return {name: HEAD + "---\n".join(["", *documents]) for name, documents in parts.items()}


def _plain(document: str) -> str:
    """A document without what is for Helm, that reads the ConfigMap of all."""
    document = re.sub(r"^  annotations:\n(?:    helm\.sh/.+\n)+", "", document, flags=re.M)
    document = re.sub(
        r"^# Source: .+\n|^ +(?:helm\.sh/chart|app\.kubernetes\.io/managed-by): .+\n", "", document, flags=re.M
    )
    return (
        document.replace(f"            name: {NAME}-first-start\n", f"            name: {NAME}\n").strip("\n") + "\n"
        if document.strip()
        else ""
    )


if __name__ == "__main__":
    for name, text in manifests().items():
        (HERE / name).write_text(text, "utf-8")
