"""The Helm chart as Helm renders it: objects of Kubernetes, and what tests ask of them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from support.patience import PATIENCE_S
from support.programs import program

from sfm_stream.config.config import Config, load_config

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy" / "helm" / "sfm-stream"
KUBERNETES = "1.37.0"
"""A Helm that `go install` has built knows no version of Kubernetes by itself."""
WORKERS = ("ingest", "publish", "rollup")
FIRST = ("--set", "firstStart=true")
Object = dict[str, Any]


def helm(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    call = [program("helm"), *map(str, arguments)]
    return subprocess.run(call, capture_output=True, text=True, timeout=PATIENCE_S)


def template(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return helm("template", "counts", CHART, "--kube-version", KUBERNETES, *arguments)


@cache
def rendered(*arguments: str | Path) -> str:
    done = template(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def objects(*arguments: str | Path) -> list[Object]:
    """Every object of the chart with these values, made anew for each caller."""
    return [each for each in yaml.safe_load_all(rendered(*arguments)) if each]


def named(found: Sequence[Object], kind: str, ending: str = "") -> Object:
    """The one object of this kind whose name ends so."""
    [one] = [each for each in found if each["kind"] == kind and each["metadata"]["name"].endswith(ending)]
    return one


def pods(found: Sequence[Object]) -> dict[str, Object]:
    """Component to the pod that its Deployment or Job makes, with labels and annotations."""
    made = [each["spec"]["template"] for each in found if each["kind"] in ("Deployment", "Job")]
    return {pod["metadata"]["labels"]["app.kubernetes.io/component"]: pod for pod in made}


def container(pod: Object) -> Object:
    [one] = pod["spec"]["containers"]
    found: Object = one
    return found


def config_of(found: Sequence[Object], pod: Object) -> str:
    """The text of the configuration that is mounted in a pod."""
    [volume] = [each for each in pod["spec"]["volumes"] if each["name"] == "config"]
    [mount] = [each for each in container(pod)["volumeMounts"] if each["name"] == "config"]
    file = mount["mountPath"] if "subPath" in mount else f"{mount['mountPath']}/app.toml"
    assert (file, mount.get("subPath", "app.toml")) == ("/pipeline/app.toml", "app.toml")
    [held] = [
        each
        for each in found
        if each["kind"] == "ConfigMap" and each["metadata"]["name"] == volume["configMap"]["name"]
    ]
    text: str = held["data"]["app.toml"]
    return text


def selects(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    return bool(selector) and selector.items() <= labels.items()


def mappings(part: object) -> Iterator[Object]:
    """Every mapping in an object, at any depth."""
    if isinstance(part, dict):
        yield part
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from mappings(inner)


def default_config() -> str:
    text: str = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))["config"]
    return text


def loader(folder: Path) -> Callable[[str], Config]:
    """Loads a configuration as it is mounted, its secrets in files that are there."""
    for name, content in (("password", b"secret\n"), ("ca.crt", b""), ("key", bytes(32))):
        (folder / name).write_bytes(content)

    def load(text: str) -> Config:
        text = re.sub(r"/secrets/\w+", str(folder), text)
        # No authority signs for a broker that there is not.
        (folder / "app.toml").write_text(text.replace('ca_file = "', '# ca_file = "'))
        return load_config(folder / "app.toml")

    return load
