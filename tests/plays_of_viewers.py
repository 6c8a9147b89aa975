"""Files of plays for tests: read as rows, or made of rows with only the columns that a test needs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from railyard.studies.population.figures import Plays
from railyard.studies.population.parts import SCHEMA, part_of

Row = dict[str, Any]


def read_plays(file: Path) -> list[Row]:
    rows: list[Row] = pq.read_table(file).to_pylist()
    return rows


def plays_of(folder: Path, rows: Sequence[Row]) -> Plays:
    """Plays with these members, in the order of a campaign. What is not given is empty."""
    file = folder / "plays.parquet"
    whole = [{field.name: _plain(field.type) for field in SCHEMA} | row for row in rows]
    file.write_bytes(part_of(sorted(whole, key=lambda row: (row["day"], row["viewer"], row["arm"]))))
    return Plays.of_file(file)


def _plain(kind: pa.DataType) -> Any:
    return "" if pa.types.is_string(kind) else [] if pa.types.is_list(kind) else None
