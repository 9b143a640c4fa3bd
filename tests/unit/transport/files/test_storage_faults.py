"""What a fault of a disk is taken for: something that may pass, or something that somebody has to look at."""

from __future__ import annotations

import errno
import os

import pytest

from sfm_stream.errors import ConfigError, StateError, StorageError
from sfm_stream.transport.files.storage_faults import database_fault, may_pass, opening

PASSING = ["FULL", "IOERR_WRITE", "IOERR_FSYNC", "IOERR", "BUSY", "BUSY_RECOVERY", "LOCKED", "PROTOCOL", "NOMEM"]
LASTING = ["CORRUPT", "CORRUPT_INDEX", "NOTADB", "IOERR_CORRUPTFS", "CANTOPEN", "READONLY", "ERROR", "MISUSE"]


@pytest.mark.parametrize("name", PASSING)
def test_what_may_pass_may_be_started_again(name, tmp_path):
    error = database_fault(str(tmp_path / "out.sqlite"), "write", f"SQLITE_{name}", "said so")
    assert isinstance(error, StorageError)
    assert error.exit_code == 7
    assert "out.sqlite: cannot write: said so" in str(error)
    assert "start again" in str(error)


@pytest.mark.parametrize("name", LASTING)
def test_what_does_not_pass_is_for_somebody_to_look_at(name, tmp_path):
    error = database_fault(str(tmp_path / "out.sqlite"), "write", f"SQLITE_{name}", "said so")
    assert isinstance(error, StateError)
    assert error.exit_code == 4
    damage = name.startswith(("CORRUPT", "NOTADB", "IOERR_CORRUPTFS"))
    assert ("raise pipeline.epoch and set window.start behind all that was ever released" in str(error)) == damage


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ESTALE])
def test_a_file_that_cannot_be_opened_now(number):
    assert may_pass(OSError(number, ""))
    with pytest.raises(StorageError, match="start again"), opening("out.sqlite", "output.path"):
        raise OSError(number, os.strerror(number))


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.EFBIG, errno.EISDIR, errno.EBADF])
def test_a_file_that_cannot_be_opened_as_configured(number):
    assert not may_pass(OSError(number, ""))
    with pytest.raises(ConfigError, match=r"^output\.path: "), opening("out.sqlite", "output.path"):
        raise OSError(number, os.strerror(number))
