"""A report of one day and the day before it: `python examples/answers/report.py app.toml 2026-06-02`.

In place of a configuration it takes the URL of a server (`sfm-stream serve`). Only what is published is read, so
running it costs no privacy.
"""

import sys
from datetime import date, timedelta

from sfm_stream.answers import Asked, open_answers


def main(source: str, day: date) -> None:
    """Print the report."""
    before, behind = str(day - timedelta(days=1)), str(day + timedelta(days=1))
    today, yesterday = Asked(since=str(day), until=behind), Asked(since=before, until=str(day))
    with open_answers(source) as answers:
        top = answers.top(5, since=today.since, until=today.until)
        changes = {row["key"][0]: row["difference"] for row in answers.compare(yesterday, today)}
        every = answers.estimates([row["key"][0] for row in top], since=today.since, until=today.until, joined=True)[0]
    print(f"{day}, {answers.terms.pipeline}")
    for row in top:
        (page,) = row["key"]
        place = f"{row['rank_low']}." if not row["tied"] else f"{row['rank_low']}. to {row['rank_high']}."
        sign = {1: "more than", -1: "fewer than", None: "about as many as"}[changes[page]["sign"]]
        print(
            f"{place:>9} {page}: {row['estimate']:.0f} ({row['low']:.0f} to {row['high']:.0f}), {sign} the day before"
        )
    print(f"          all of these: {every['estimate']:.0f} ({every['low']:.0f} to {every['high']:.0f})")


if __name__ == "__main__":
    main(sys.argv[1], date.fromisoformat(sys.argv[2]))
