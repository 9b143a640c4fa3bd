"""Tables for people: what is printed of many rows, and how many of them are held for it."""

from __future__ import annotations

import pytest

from sfm_stream.cli import screen


@pytest.mark.parametrize(
    ("rows", "tables"), [(0, [0]), (2, [2]), (3, [3]), (7, [3, 3, 1])], ids=["none", "few", "as many as fit", "many"]
)
def test_no_more_rows_are_held_than_are_in_a_table(monkeypatch, capsys, rows, tables):
    monkeypatch.setattr(screen, "TABLE_ROWS", 3)
    met, printed = [], []

    class Screen:
        def print(self, table):
            printed.append(table.row_count)
            assert len(met) <= sum(printed)

    def noted():
        for number in range(rows):
            met.append(number)
            yield str(number), "x"

    monkeypatch.setattr(screen, "console", Screen)
    screen.print_table(("number", "text"), noted())
    assert printed == tables


def test_every_table_has_its_heads(monkeypatch, capsys):
    monkeypatch.setattr(screen, "TABLE_ROWS", 2)
    screen.print_table(("number",), ((str(number),) for number in range(3)))
    assert capsys.readouterr().out.split() == ["number", "0", "1", "number", "2"]
    screen.print_table(("number",), ())
    assert capsys.readouterr().out.split() == ["number"]
