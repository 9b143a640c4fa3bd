"""`sfm-stream test`: do the records of these cases count where they are expected to?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from sfm_stream.answers.key_notation import key_json, key_text
from sfm_stream.cli.output import echo_json
from sfm_stream.composition.case_runs import Fate, fates
from sfm_stream.config.cases import Case, load_cases
from sfm_stream.config.config import load_config
from sfm_stream.readable import instant, visible
from sfm_stream.types import Reason


@click.command()
@click.argument("config", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("cases", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="As one JSON document.")
def test(config: Path, cases: Path, as_json: bool) -> None:
    """Read the events of CASES as CONFIG would, and compare what becomes of each with what is expected.

    An event counts, in a window of each released span and under a key, or it is dropped for a reason. They are read in
    the order of the file by the extraction and the windows of a worker, which knows nothing else: no input and no
    output is opened. docs/testing.md explains the file. Exit code 1 where a case is not as expected.
    """
    loaded = load_config(config)
    listed = load_cases(cases, loaded)
    became = fates(loaded, listed)
    compared = [(case, fate, _is_as_expected(case, fate)) for case, fate in zip(listed.cases, became, strict=True)]
    failed = sum(not right for _, _, right in compared)
    if as_json:
        rows = [
            {"name": case.name, "passed": right, "expected": _expected_json(case), "got": _fate_json(fate)}
            for case, fate, right in compared
        ]
        echo_json({"passed": len(compared) - failed, "failed": failed, "cases": rows})
    else:
        for number, (case, fate, right) in enumerate(compared):
            click.echo(f"{'ok    ' if right else 'FAILED'}  {visible(case.name)}")
            if not right:
                click.echo(f"        expected  {_expected_text(case)}")
                click.echo(f"        got       {_fate_text(fate, case)}    (cases.{number})")
        click.echo(f"{len(compared)} cases, {failed} failed")
    if failed:
        raise click.exceptions.Exit(1)


def _is_as_expected(case: Case, fate: Fate) -> bool:
    if case.dropped is not None:
        return fate.reason is case.dropped
    same_key = case.key is None or _key_of(case) == fate.key
    return fate.reason is Reason.OK and fate.starts_ms == case.counted and same_key


def _key_of(case: Case) -> tuple[str | int, ...]:
    key = case.key
    return () if key is None else tuple(key) if isinstance(key, list) else (key,)


def _expected_text(case: Case) -> str:
    if case.dropped is not None:
        return f"dropped: {case.dropped.name.lower()}"
    return _counted_text(case.counted or {}, None if case.key is None else key_text(_key_of(case)))


def _fate_text(fate: Fate, case: Case) -> str:
    if fate.reason is not Reason.OK:
        return f"dropped: {fate.reason.name.lower()}"
    if not fate.starts_ms:
        return "in no window that is released"
    return _counted_text(fate.starts_ms, None if case.counted is not None and case.key is None else key_text(fate.key))


def _counted_text(starts_ms: Mapping[str, int], key: str | None) -> str:
    windows = ", ".join(f"{name} from {instant(start_ms)}" for name, start_ms in starts_ms.items())
    return f"counted: {windows}" + ("" if key is None else f", under {key}")


def _expected_json(case: Case) -> dict[str, Any]:
    if case.dropped is not None:
        return {"dropped": case.dropped.name.lower()}
    return {"counted": _times(case.counted or {})} | ({} if case.key is None else {"key": key_json(_key_of(case))})


def _fate_json(fate: Fate) -> dict[str, Any]:
    if fate.reason is not Reason.OK:
        return {"dropped": fate.reason.name.lower()}
    return {"counted": _times(fate.starts_ms), "key": key_json(fate.key)}


def _times(starts_ms: Mapping[str, int]) -> dict[str, str]:
    return {name: instant(start_ms) for name, start_ms in starts_ms.items()}
