"""Hypothesis strategies for rows of traces, derived from the schema of the tables."""

from __future__ import annotations

from hypothesis import strategies as st

from broker.trace.schema import TABLES, Column, Row, Table

INT64 = 2**63
_VALUES: dict[str, st.SearchStrategy[object]] = {
    "str": st.text(max_size=8),
    "int": st.integers(-INT64, INT64 - 1),
    "float": st.floats(allow_nan=False),
    "bool": st.booleans(),
}


def values_of(column: Column) -> st.SearchStrategy[object]:
    values = _VALUES[column.type]
    return st.none() | values if column.is_nullable else values


def rows_of(table: Table) -> st.SearchStrategy[Row]:
    return st.builds(table.row_type, *(values_of(column) for column in table.row_columns))


any_row: st.SearchStrategy[Row] = st.sampled_from(list(TABLES.values())).flatmap(rows_of)
