"""What a chart must not make: pods that may do more than they need, names that lead to nothing."""

from __future__ import annotations

from collections.abc import Sequence

from support.charts import Object, container, mappings, pods, selects


def not_restricted(pod: Object) -> list[str]:
    """What of a pod the standard "restricted" of Kubernetes refuses, and more that this chart promises."""
    spec, problems = pod["spec"], []
    security = spec["securityContext"]
    if security.get("runAsNonRoot") is not True or not security.get("runAsUser"):
        problems.append("may be root")
    if security.get("seccompProfile") != {"type": "RuntimeDefault"}:
        problems.append("no seccomp profile")
    if spec.get("automountServiceAccountToken") is not False:
        problems.append("has a token of the cluster")
    problems += [f"shares {name} of the host" for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name)]
    problems += [
        f"volume {volume['name']}"
        for volume in spec["volumes"]
        if volume.keys() - {"name"} not in ({"configMap"}, {"secret"}, {"emptyDir"})
    ]
    for each in spec["containers"]:
        own = each["securityContext"]
        if own.get("allowPrivilegeEscalation") is not False or own.get("capabilities") != {"drop": ["ALL"]}:
            problems.append("may gain rights")
        if own.get("readOnlyRootFilesystem") is not True:
            problems.append("may write its image")
        if not each["resources"].get("limits", {}).get("memory") or not each["resources"].get("requests"):
            problems.append("takes what it likes")
        if each.get("env") or each.get("envFrom"):
            problems.append("has an environment")
    return problems


def dangling(found: Sequence[Object]) -> list[str]:
    """Selectors that select no pod, and ports by names that their pods do not have."""
    problems = []
    made = pods(found).values()
    for each in found:
        spec, name = each.get("spec", {}), f"{each['kind']} {each['metadata']['name']}"
        selector = spec.get("selector", spec.get("podSelector", {}))
        selector = selector.get("matchLabels", selector)
        if each["kind"] in ("Deployment", "Service", "NetworkPolicy", "PodDisruptionBudget", "PodMonitor"):
            selected = [pod for pod in made if selects(selector, pod["metadata"]["labels"])]
            if not selected:
                problems.append(f"{name} selects nothing")
            ports = {port["name"] for pod in selected for port in container(pod).get("ports", [])}
            asked = {part["targetPort"] for part in mappings(spec) if "targetPort" in part}
            if each["kind"] != "Service":
                asked |= {part["port"] for part in mappings(spec) if isinstance(part.get("port"), str)}
            problems += [f"{name} asks for port {port}" for port in asked - ports]
        if each["kind"] == "ServiceMonitor":
            services = [
                other["spec"]
                for other in found
                if other["kind"] == "Service" and selects(selector, other["metadata"]["labels"])
            ]
            ports = {port["name"] for service in services for port in service["ports"]}
            problems += [f"{name} asks for port {e['port']}" for e in spec["endpoints"] if e["port"] not in ports]
    return problems
