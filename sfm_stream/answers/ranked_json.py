"""The JSON of a key with its rank."""

from __future__ import annotations

from sfm_stream.answers.row_json import row_json
from sfm_stream.answers.top_keys import RankedRow


def ranked_json(ranked: RankedRow) -> dict[str, object]:
    """The fields of row_json, and the ranks that are left open, among how many published keys.

    tied: whether the rank is left open. others_withheld: whether withheld keys may stand anywhere among them.
    """
    return {
        **row_json(ranked.row),
        "rank_low": ranked.rank_low,
        "rank_high": ranked.rank_high,
        "tied": ranked.tied,
        "published": ranked.published,
        "others_withheld": ranked.others_withheld,
    }
