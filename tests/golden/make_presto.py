"""Rewrites the golden files of Presto's format from the naive reference alone: python tests/golden/make_presto.py."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from reference.presto_reader import Blob, write  # noqa: E402 -- found by the path above

if __name__ == "__main__":
    (HERE / "presto-empty-4096x24.bin").write_bytes(write(Blob(12, 24, 0.0, frozenset())))
    (HERE / "presto-bigint-1-2-3-512x8.bin").write_bytes(write(Blob(9, 8, 0.0, frozenset({271, 318, 2517}))))
    private = frozenset(range(1, 352, 7)) | {351}
    (HERE / "presto-private-16x22.bin").write_bytes(write(Blob(4, 22, 0.2689414213699951, private)))
