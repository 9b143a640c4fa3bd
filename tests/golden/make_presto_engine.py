"""Rewrites presto-engine.json, what a real Presto made and counted: `make presto-golden`."""

import base64
import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from reference import presto_reader  # noqa: E402 -- found by the path above

SETS = {
    "bigint": "BIGINT '1', BIGINT '-3', BIGINT '9223372036854775807'",
    "integer": "INTEGER '1', INTEGER '-3', INTEGER '2147483647'",
    "smallint": "SMALLINT '1', SMALLINT '-3'",
    "tinyint": "TINYINT '1', TINYINT '-3'",
    "double": "DOUBLE '1.5', -0e0, 0e0, nan(), infinity()",
    "varchar": "'a', '', 'é', 'a longer text, of more than 32 bytes'",
    "char(3)": "CAST('a' AS CHAR(3)), CAST('abc' AS CHAR(3))",
    "varbinary": "X'00ff', X''",
    "date": "DATE '1970-01-02', DATE '2023-11-14', DATE '1969-12-31'",
    "timestamp": "TIMESTAMP '1970-01-02 00:00:00', TIMESTAMP '2023-11-14 22:13:20.123'",
    "real": "REAL '1.5', REAL '-0.1'",
    "decimal(3,2)": "DECIMAL '1.50', DECIMAL '-2.25'",
    "bigint and null": "BIGINT '1', NULL, BIGINT '3'",
}
"""Values in SQL; tests/unit/wire/test_presto_engine.py has the items that they are here."""


def bitmaps() -> list[bytes]:
    """Presto's bytes of bitmaps as sets of 0 to 10^6 items make them, raw and private, and of three that are full."""
    rng = np.random.default_rng(20261128)
    blobs = []
    for bits, levels in [(4, 8), (5, 32), (6, 24), (8, 24)]:
        for epsilon in [None, 0.5, 1, 2, 4, 8]:
            p = 0.0 if epsilon is None else 1 / (1 + np.exp(epsilon))
            for items in [0, 1, 30, 3_000, 1_000_000]:
                places = np.minimum(rng.geometric(0.5, items) - 1, levels - 1) << bits
                lit = np.zeros(levels << bits, bool)
                lit[places + rng.integers(0, 1 << bits, items)] = True
                lit ^= rng.random(len(lit)) < p
                cells = frozenset(np.flatnonzero(lit).tolist())
                blobs.append(presto_reader.write(presto_reader.Blob(bits, levels, float(p), cells)))
    # Counts beyond 2^52, of which half are odd, show how the engine rounds.
    full = [presto_reader.Blob(5, 47, 0.0, frozenset(range((47 << 5) - missing))) for missing in (7, 11, 15)]
    return blobs + [presto_reader.write(blob) for blob in full]


def asked(server) -> dict[str, object]:
    """The content of the golden file, by this engine."""
    made = "noisy_approx_set_sfm(x, infinity(), 64, 8)"
    sets = {}
    for name, values in SETS.items():
        ((blob,),) = server.ask(f"SELECT CAST({made} AS VARBINARY) FROM (VALUES {values}) t(x)")
        sets[name] = blob
    blobs = bitmaps()
    counts = server.counts("golden", blobs)
    texts = (base64.b64encode(blob).decode() for blob in blobs)
    return {"engine": "Presto 0.287", "sets_64x8": sets, "counts": dict(zip(texts, counts, strict=True))}


if __name__ == "__main__":
    from support.presto_server import presto_server

    with tempfile.TemporaryDirectory() as folder:
        with presto_server(Path(os.environ["PRESTO_HOME"]), Path(folder)) as server:
            content = asked(server)
        (HERE / "presto-engine.json").write_text(json.dumps(content, indent=1) + "\n")
