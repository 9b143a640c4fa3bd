"""Pods of a rendered chart as processes of this machine, each in a container of its own, but for the network.

The container has what the pod's specification gives it: process 1 and its child, the arguments as they are rendered,
configuration and Secrets where they are mounted, a root file system that nobody can write, the user and no rights.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from support.charts import ROOT, Object, config_of, container
from support.patience import PATIENCE_S, until

HOST = "127.0.0.1"
_CONTAINER = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "sh", "-euc"]
_ROOT = """
mount -t tmpfs tmpfs "$root"
for each in /*; do
    case " $own " in *" $each "*) mkdir "$root$each"; continue;; esac
    if [ -L "$each" ]; then cp -a "$each" "$root$each"; elif [ -d "$each" ]; then
        mkdir "$root$each"
        mount --rbind "$each" "$root$each"
        mount -o remount,bind,ro "$root$each" 2>/dev/null || true
    fi
done
"""
"""A root file system with the folders of this machine, but for those below which something is mounted."""
_SHOWN = """
[ -e "$root{path}" ] || { mkdir -p "$root{path}"; mount --bind "{path}" "$root{path}"; }
"""
_MOUNT = """
{make}
mount --bind "{place}" "$root{path}"
{read_only}mount -o remount,bind,ro "$root{path}"
"""
_RUN = """
mount -o remount,ro "$root"
exec chroot "$root" setpriv --reuid={user} --regid={user} --clear-groups --bounding-set=-all --inh-caps=-all \\
    --no-new-privs env -C / {command}
"""


def containers() -> None:
    """Skips where this process may not make containers; under CI it fails."""
    done = subprocess.run(
        [*_CONTAINER, "mount -t tmpfs tmpfs /mnt"], capture_output=True, text=True, timeout=PATIENCE_S
    )
    if done.returncode:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"no container can be made here: {done.stderr.strip()}")


class PodProcess:
    """The container of one pod. A folder that is there is kept, as for a container that is started again.

    secrets: name of a Secret to its files.
    """

    def __init__(self, found: Sequence[Object], pod: Object, folder: Path, secrets: Mapping[str, Mapping[str, bytes]]):
        self.container, self.folder, self.log = container(pod), folder, folder / "log"
        user = pod["spec"]["securityContext"]["runAsUser"]
        volumes = {each["name"]: each for each in pod["spec"]["volumes"]}
        mounted = [each["mountPath"] for each in self.container["volumeMounts"]]
        root = folder / "root"
        root.mkdir(parents=True, exist_ok=True)
        shown = [str(ROOT), sys.prefix, sys.base_prefix]  # also where they lie in a folder that is not for everybody
        tops = " ".join({f"/{path.split('/')[1]}" for path in [*mounted, *shown]})
        script = f"root={root} own='{tops}'{_ROOT}"
        for mount in self.container["volumeMounts"]:
            volume, place = volumes[mount["name"]], folder / mount["name"]
            place.mkdir(exist_ok=True)
            if "secret" in volume:
                for name, content in secrets[volume["secret"]["secretName"]].items():
                    (place / name).write_bytes(content)
                    os.chown(place / name, 0, user)
                    (place / name).chmod(volume["secret"]["defaultMode"])
            elif "configMap" in volume:
                (place / "app.toml").write_text(config_of(found, pod))
            else:
                os.chown(place, user, user)
            read_only = "" if mount.get("readOnly") else "# "
            path = mount["mountPath"]
            make = f'mkdir -p "$root{path}"'
            if "subPath" in mount:
                place /= mount["subPath"]
                make = f'mkdir -p "$root{Path(path).parent}"; : > "$root{path}"'
            script += _MOUNT.format(make=make, path=path, place=place, read_only=read_only)
        script += "".join(_SHOWN.replace("{path}", path) for path in shown)
        command = shlex.join([sys.executable, "-m", "sfm_stream.cli", *self.container["args"]])
        assert self.container["securityContext"]["readOnlyRootFilesystem"]
        with self.log.open("a") as log:
            call = [*_CONTAINER, script + _RUN.format(user=user, command=command)]
            self.process = subprocess.Popen(call, stdout=log, stderr=log)

    def probed(self, name: str) -> int:
        """What a probe of the container is answered: the status, 0 where nobody listens."""
        asked = self.container[f"{name}Probe"]["httpGet"]
        # The kubelet asks by the address of the pod, which no configuration knows.
        return page(self.port(asked["port"]), asked["path"], {"Host": f"10.1.2.3:{self.port(asked['port'])}"})[0]

    def port(self, name: str) -> int:
        [port] = [each["containerPort"] for each in self.container["ports"] if each["name"] == name]
        number: int = port
        return number

    def status(self) -> dict[str, str]:
        """What the system says of its process 1: user, rights."""
        text = Path(f"/proc/{self._first_process()}/status").read_text()
        return {name: value.strip() for name, _, value in (line.partition(":") for line in text.splitlines())}

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def stop(self) -> int:
        """As the kubelet stops it: SIGTERM for its process 1. Its exit code."""
        os.kill(self._first_process(), signal.SIGTERM)
        return self.process.wait(PATIENCE_S)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE_S)

    def _first_process(self) -> int:
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        until(lambda: children.read_text().split(), self.said)
        return int(children.read_text().split()[0])


def page(port: int, path: str, headers: Mapping[str, str]) -> tuple[int, str]:
    request = urllib.request.Request(f"http://{HOST}:{port}{path}", headers=dict(headers))
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as answer:
        return answer.code, answer.read().decode()
    except OSError:
        return 0, ""
