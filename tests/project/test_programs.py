"""Tests that need a program are skipped without it, and fail where CI should have brought it."""

import pytest
from support.programs import program


def test_a_program_that_is_there_is_found():
    assert program("sh").endswith("/sh")


def test_without_the_program_a_test_is_skipped_or_under_ci_fails(monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no-such-program is not installed"):
        program("no-such-program")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match=r"no-such-program is not installed.+\.ci/programs"):
        program("no-such-program")
