"""Key tables of both kernels against a list: the same ids for whatever comes and goes, and no id for two keys."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.naive_key_ids import NaiveKeyIds
from support.both_kernels import KERNELS
from support.key_tables import table_of

TEXTS = st.text("ab\u00e9\ud83d\ude00\udfff\0", max_size=3) | st.text(max_size=40)
"""With lone surrogates, which no decoded record has and no UTF-8 can hold."""
INTEGERS = st.integers(-2, 2) | st.integers(-(1 << 63), (1 << 63) - 1)
PARTS = TEXTS | INTEGERS | st.binary(max_size=3)
KEYS = PARTS | st.lists(PARTS, max_size=3).map(tuple)
STEPS = st.one_of(
    st.tuples(st.just("intern"), st.lists(KEYS, max_size=6)),
    st.tuples(st.just("look up"), st.lists(KEYS | st.none(), max_size=6)),
    st.tuples(st.just("retain"), st.randoms(use_true_random=False)),
)


@settings(max_examples=300)
@given(st.lists(STEPS, max_size=30))
def test_ids_are_those_of_a_list_whatever_comes_and_goes(steps):
    tables, model = [table_of(kernel) for kernel in KERNELS], NaiveKeyIds()
    for what, given_ in steps:
        if what == "intern":
            new = [key for key in {repr(key): key for key in given_}.values() if model.id_of(key) < 0]
            numbers = [model.intern(key) for key in new]
            assert all(table.intern_new(new) == numbers for table in tables)
            assert all([table.intern(key) for key in given_] == [*map(model.id_of, given_)] for table in tables)
        elif what == "look up":
            assert all(table.ids_of(given_).tolist() == [*map(model.id_of, given_)] for table in tables)
        else:
            live = [number for number, key in enumerate(model.keys) if key is not None and given_.random() < 0.5]
            model.retain(live)
            for table in tables:
                table.retain(np.array(live, np.int32))
        held = {number: key for number, key in enumerate(model.keys) if key is not None}
        for table in tables:
            assert len(table) == len(held)
            assert [*map(repr, table)] == [*map(repr, held.values())]
            assert all(repr(table[number]) == repr(key) for number, key in held.items())
            assert [table.id_of(key) for key in held.values()] == [*held]


NO_KEYS = (
    st.none()
    | st.floats()
    | st.integers(1 << 63, 1 << 70)
    | st.lists(INTEGERS, max_size=2)
    | st.tuples(PARTS, st.none() | st.tuples(PARTS))
)


@given(st.lists(NO_KEYS, max_size=4), KEYS)
def test_what_is_no_key_is_not_held_by_the_compiled_table(others, key):
    for kernel in KERNELS[1:]:
        table = table_of(kernel, [key])
        assert table.ids_of([key, *others, key]).tolist() == [0, *[-1] * len(others), 0]
