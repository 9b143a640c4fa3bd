"""The order in which the tests run."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePath

import pytest
from support.order import long_first

FILES = {
    "unit/a.py": "",
    "unit/b.py": "",
    "contract/c.py": "kafka",
    "integration/d.py": "",
    "integration/e.py": "kafka_three",
    "integration/f.py": "kafka",
    "integration/g.py": "kafka_three",
    "properties/h.py": "",
}


@dataclass(frozen=True)
class Named:
    path: PurePath
    number: int
    fixturenames: list[str] = field(default_factory=list, compare=False)


TESTS = [
    # The last test of a file alone asks for the broker.
    Named(PurePath("tests", name), number, [fixture] if number == 2 else [])
    for name, fixture in FILES.items()
    for number in range(3)
]


@pytest.mark.parametrize("workers", [1, 2, 3, 9])
def test_every_test_runs_once_and_files_stay_whole(workers):
    ordered = long_first(TESTS, workers)
    assert sorted(ordered, key=TESTS.index) == TESTS
    assert [test.number for test in ordered] == [0, 1, 2] * len(FILES)
    assert all(len({test.path for test in ordered[at : at + 3]}) == 1 for at in range(0, len(ordered), 3))


def names(workers: int) -> str:
    return "".join(test.path.stem for test in long_first(TESTS, workers)[::3])


def test_what_takes_long_is_first_in_every_part_and_clusters_of_three_in_one():
    assert names(1) == "egcfdhab"
    assert names(2) == "eg" + "fhb" + "cda"
    assert names(3) == "eg" + "db" + "ch" + "fa"
