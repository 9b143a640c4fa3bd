"""Numbers on the command line, exactly as they are written."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

import click

from sfm_stream.errors import EpsilonError
from sfm_stream.planning.forecast import Selection
from sfm_stream.privacy.epsilon import parse_epsilon
from sfm_stream.privacy.selection import parse_delta


def above_zero(context: click.Context, parameter: click.Parameter, written: str | None) -> Decimal | None:
    """A number above 0. Raises click.BadParameter."""
    if written is None:
        return None
    try:
        number = Decimal(written)
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite() or number <= 0:
        raise click.BadParameter(f"{written!r} is no number above 0")
    return number


def selection_price(
    context: click.Context, parameter: click.Parameter, written: tuple[str, str] | None
) -> Selection | None:
    """The price of a selection, from two numbers. Raises click.BadParameter."""
    if written is None:
        return None
    epsilon, delta = (above_zero(context, parameter, each) for each in written)
    try:
        return Selection(parse_epsilon(epsilon, "EPSILON"), parse_delta(delta, "DELTA"))
    except EpsilonError as error:
        raise click.BadParameter(str(error)) from None
