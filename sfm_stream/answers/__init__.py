"""Answers in Python: the same question, and the same rows, of a file, of topics or of a server.

::

    from sfm_stream.answers import Asked, open_answers

    with open_answers("app.toml") as views:                 # what a configuration publishes, into a file or topics
        views.estimates(keys=["/home"], last="7d", by="day").to_pandas()

    with open_answers("http://127.0.0.1:8464", "views") as views:       # what `sfm-stream serve` answers; needs httpx
        views.top(10, last="7d").to_polars()
        views.pair(Asked(keys=["/home"], last="7d"), Asked(keys=["/news"]))

The names are loaded when the first of them is used (PEP 562), and pandas, polars, pyarrow and httpx where they are
needed. docs/client.md has the columns.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sfm_stream.answers.asked import Asked
    from sfm_stream.client.answer_table import AnswerTable
    from sfm_stream.client.published_answers import PublishedAnswers, open_answers
else:

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from sfm_stream.client import published_answers

        return getattr(published_answers, name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


__all__ = ["AnswerTable", "Asked", "PublishedAnswers", "open_answers"]
