"""Why a server does not answer a question that could be answered. Both are SfmStreamErrors, of this layer alone."""

from __future__ import annotations

from sfm_stream.errors import SfmStreamError, UsageError


class TooMuchAsked(UsageError):
    """A question that takes more rows, a longer span or more time than the server allows."""


class NotNow(SfmStreamError):
    """The copy of the topics is not complete, or others are answered. The same question can be asked again later."""

    exit_code = 7
