"""The plays of a campaign as a table in SQL. DuckDB reads the columns that a query needs and returns arrays."""

import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from railyard.base.errors import UserError

MEMORY = "512MB"
"""The memory limit of DuckDB, which sorts and groups larger data in temporary files."""
ROWS_AT_ONCE = 2048
Reals = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]


def connect() -> duckdb.DuckDBPyConnection:
    """A database in memory, whose size does not depend on the data that it reads."""
    database = duckdb.connect(":memory:", config={"python_enable_replacements": "false", "threads": 1})
    for setting in (f"memory_limit = {literal(MEMORY)}", f"temp_directory = {literal(tempfile.gettempdir())}"):
        database.execute(f"SET {setting}")
    return database


def literal(text: str) -> str:
    """A text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


class Table:
    """A file of plays in the order of viewers, with each viewer's plays next to each other. In SQL it is `plays`."""

    def __init__(self, file: Path) -> None:
        self.file = file
        if not file.is_file():
            raise UserError(f"{file}: there is no such file; `railyard study population` or `railyard run` makes it.")
        self._database = connect()
        name = re.sub(r"([*?\[])", r"[\1]", str(file))
        with self._reading():
            self._database.execute(f"CREATE VIEW plays AS FROM read_parquet({literal(name)}, file_row_number = true)")

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (duckdb.IOException, duckdb.InvalidInputException):
            raise UserError(f"{self.file}: it cannot be read; the command that made it writes it again.") from None

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of a small answer."""
        with self._reading():
            rows: list[tuple[Any, ...]] = self._database.execute(sql, list(parameters)).fetchall()
        return rows

    def columns(self, sql: str, parameters: Sequence[Any] = ()) -> list[Reals]:
        """Columns of numbers without NULL."""
        with self._reading():
            columns = self._database.execute(sql, list(parameters)).fetchnumpy()
        return [np.asarray(column, dtype=np.float64) for column in columns.values()]

    def lists(self, sql: str, parameters: Sequence[Any] = ()) -> tuple[Reals, Counts]:
        """A column of lists of numbers: all values, and the length of each list."""
        values, lengths = [np.zeros(0)], [np.zeros(0, dtype=np.int64)]
        with self._reading():
            relation = self._database.sql(sql, params=list(parameters))
            reader: pa.RecordBatchReader = relation.to_arrow_reader(ROWS_AT_ONCE)
            for batch in reader:
                column = batch.column(0)
                values.append(column.flatten().to_numpy(zero_copy_only=False))
                lengths.append(pc.list_value_length(column).to_numpy(zero_copy_only=False).astype(np.int64))
        return np.concatenate(values).astype(np.float64, copy=False), np.concatenate(lengths)
