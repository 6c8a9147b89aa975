"""SQL over all campaigns of a folder of results: typed, documented views in DuckDB, which can read no files."""

import io
import json
import math
import re
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from railyard.base.errors import UserError
from railyard.base.forms import csv_text
from railyard.results.campaigns import StoredCampaign, campaigns_or_error, newest_of
from railyard.results.columns import (
    CAMPAIGN,
    CAMPAIGNS,
    CLAIMS,
    EXHIBITS,
    PAPER,
    PLAYS,
    SCHEMA,
    STORED,
    TABLES,
    StoredTable,
)
from railyard.results.upgrade import as_now, read_parquet, stored_tables, version_of

FORMATS = ("table", "csv", "json", "parquet")
ROWS_AT_A_TIME = 10_000  # between two batches, Ctrl-C is heeded
MOST_NAMED = 5
SAFE_NAME = re.compile(r"^[a-z][a-z0-9_]*$")

PATHS_SQL = """
CREATE VIEW paths AS
WITH one AS (
  SELECT campaign, run_id, path, any_value(technology) AS technology,
         sum(departed_bytes) FILTER (direction = 'up') AS up,
         sum(departed_bytes) FILTER (direction = 'down') AS down,
         sum(queue_drops) AS drops
  FROM links GROUP BY campaign, run_id, path
)
SELECT campaign, run_id, path, technology, path = r."primary" AS is_primary,
       CAST(up AS BIGINT) AS up_bytes, CAST(down AS BIGINT) AS down_bytes,
       down / nullif(sum(down) OVER (PARTITION BY campaign, run_id), 0) AS down_share,
       CAST(coalesce(drops, list_filter(r.paths, lambda p: p.name = path)[1].queue_drops) AS BIGINT) AS queue_drops
FROM one JOIN runs r USING (campaign, run_id)
"""
FIRST_FRAMES_SQL = """
CREATE VIEW first_frames AS
SELECT campaign, run_id, pair, label, seed, handshake_s,
       coalesce(first_frame_s, first_frame_counted_s) AS first_frame_s, first_frame_s IS NOT NULL AS shown
FROM runs WHERE NOT void AND (first_frame_s IS NOT NULL OR failed)
"""


def _campaign_row(campaign: StoredCampaign, newest: bool) -> dict[str, Any]:
    git = campaign.record.get("git", {})
    file = campaign.folder / "runs.parquet"
    return {
        "campaign": campaign.name,
        "experiment": campaign.experiment_name or None,
        "arena": campaign.arena,
        "state": campaign.state,
        "runs_asked": len(campaign.asked) or None,
        "runs_whole": campaign.runs_whole,
        "runs_void": campaign.runs_void,
        "runs_failed": campaign.runs_failed,
        "newest": newest,
        "started": campaign.started,
        "command": campaign.record.get("command") or campaign.exhibit.get("command"),
        "git_revision": git.get("revision"),
        "git_dirty": git.get("dirty"),
        "schema": version_of(file) if file.is_file() else None,
    }


def _as_text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _exhibit_rows(campaign: StoredCampaign) -> dict[str, list[dict[str, Any]]]:
    """The rows of the exhibit, its claims and its figures of the paper, by table. Empty without an exhibit."""
    exhibit = campaign.exhibit
    if not exhibit:
        return {}
    place = {"campaign": campaign.name, "exhibit": exhibit.get("name")}

    def texts(record: dict[str, Any], table: StoredTable) -> dict[str, Any]:
        return {column.name: _as_text(record.get(column.name)) for column in table.columns if column.name not in place}

    own = texts(exhibit, EXHIBITS) | {"modelled": bool(exhibit.get("modelled"))}
    own |= {"created": exhibit.get("provenance", {}).get("created")}
    return {
        "exhibits": [place | own],
        "claims": [place | texts(claim, CLAIMS) for claim in exhibit.get("claims", [])],
        "paper": [place | texts(row, PAPER) for row in exhibit.get("paper", [])],
    }


def _with_campaign(table: pa.Table, name: str) -> pa.Table:
    return table.add_column(0, CAMPAIGN.name, pa.array([name] * table.num_rows, CAMPAIGN.type))


def _other_tables(campaigns: Sequence[StoredCampaign]) -> dict[str, list[pa.Table]]:
    """Further Parquet files of campaigns, each under its own name: `samples.parquet` becomes the view `samples`."""
    known = {table.name for table in TABLES}
    other_tables: dict[str, list[pa.Table]] = {}
    for campaign in campaigns:
        for file in sorted(campaign.folder.glob("*.parquet")):
            if file.stem not in known and SAFE_NAME.match(file.stem):
                table = read_parquet(file, remedy="remove it")
                if CAMPAIGN.name not in table.column_names:
                    other_tables.setdefault(file.stem, []).append(_with_campaign(table, campaign.name))
    return other_tables


def _plays(campaigns: Sequence[StoredCampaign]) -> pa.Table:
    """The plays of all populations."""
    plays = [PLAYS.arrow_schema().empty_table()]
    for campaign in campaigns:
        file = campaign.folder / "plays.parquet"
        if file.is_file():
            table = read_parquet(file, remedy="the command that made it writes it again")
            plays.append(_with_campaign(as_now(table, PLAYS), campaign.name))
    return pa.concat_tables(plays)


def _tables(campaigns: Sequence[StoredCampaign]) -> dict[str, pa.Table]:
    newest = {campaign.folder for campaign in newest_of(list(campaigns)).values()}
    made: dict[str, list[dict[str, Any]]] = {
        "campaigns": [_campaign_row(campaign, campaign.folder in newest) for campaign in campaigns]
    }
    stored: dict[str, list[pa.Table]] = {table.name: [] for table in STORED}
    for campaign in campaigns:
        if campaign.in_parquet is not None or campaign.whole:
            for name, table in stored_tables(campaign).items():
                stored[name].append(_with_campaign(table, campaign.name))
        for name, rows in _exhibit_rows(campaign).items():
            made.setdefault(name, []).extend(rows)
    tables = {
        table.name: pa.Table.from_pylist(made.get(table.name, []), schema=table.arrow_schema())
        for table in (CAMPAIGNS, EXHIBITS, CLAIMS, PAPER)
    }
    tables[PLAYS.name] = _plays(campaigns)
    for table in STORED:
        schema = table.arrow_schema().insert(0, pa.field(CAMPAIGN.name, CAMPAIGN.type))
        tables[table.name] = pa.concat_tables([schema.empty_table(), *stored[table.name]])
    for name, parts in _other_tables(campaigns).items():
        try:
            tables[name] = pa.concat_tables(parts, promote_options="permissive")
        except pa.ArrowException:
            raise UserError(f"the campaigns' files {name}.parquet have columns of different types.") from None
    return tables


def connect(results: Path) -> duckdb.DuckDBPyConnection:
    """A database in memory with the tables of all campaigns as views. It cannot access files."""
    tables = _tables(campaigns_or_error(results))
    database = duckdb.connect(":memory:", config={"python_enable_replacements": "false"})
    for name, table in tables.items():
        database.register(name, table)
    database.execute(PATHS_SQL)
    database.execute(FIRST_FRAMES_SQL)
    for setting in (
        "autoload_known_extensions = false",
        "autoinstall_known_extensions = false",
        "TimeZone = 'UTC'",
        "enable_external_access = false",
        "lock_configuration = true",
    ):
        database.execute(f"SET {setting}")
    return database


def older_tables(results: Path) -> str:
    """A sentence on what tables of an earlier schema lack, with the remedy. Empty if there are no such tables."""
    files = [(campaign.name, campaign.folder / "runs.parquet") for campaign in campaigns_or_error(results)]
    older = [name for name, file in files if file.is_file() and version_of(file) < SCHEMA]
    if not older:
        return ""
    names = ", ".join(older[:MOST_NAMED]) + (f" and {len(older) - MOST_NAMED} more" if len(older) > MOST_NAMED else "")
    return (
        f"Tables of an earlier version: {names}. Columns that it did not have are null, and chunks that a play cut by "
        "its time limit never requested are missing; `railyard report CAMPAIGN` writes the tables again."
    )


def _sentence(error: duckdb.Error) -> str:
    """The first line of DuckDB's message, with the column that it suggests, if any."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    first = re.sub(r"[.!]+$", "", lines[0]) if lines else "the query failed"
    hint = next((line for line in lines[1:] if line.startswith("Candidate bindings")), "")
    return f"{first}; {hint[0].lower()}{hint[1:].rstrip('.')}." if hint else f"{first}."


def run_query(database: duckdb.DuckDBPyConnection, sql: str) -> pa.Table:
    """The answer to one SELECT. Raises UserError for any other statement."""
    try:
        statements = database.extract_statements(sql)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise UserError("a query is one SELECT; results are read here, never written.")
        table: pa.Table = database.sql(sql).to_arrow_table()
    except duckdb.Error as error:
        raise UserError(f"{_sentence(error)} `railyard query` alone lists the tables and columns.") from None
    return table


def rows_of(answer: pa.Table) -> Iterator[tuple[Any, ...]]:
    """The rows, with mappings as dictionaries. Two columns may have the same name. Raises UserError if Python cannot
    represent a time."""
    for batch in answer.to_batches(ROWS_AT_A_TIME):
        columns = []
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            try:
                columns.append(column.to_pylist(maps_as_pydicts="lossy"))
            except (OverflowError, ValueError):
                raise UserError(
                    f"column {name}: a time outside of the years 1 to 9999, or finer than microseconds, cannot be "
                    "written as text; cast the column to VARCHAR, or use --format parquet."
                ) from None
        yield from zip(*columns, strict=True)


def answer_bytes(answer: pa.Table, form: str) -> bytes:
    """The answer as CSV with a heading, as a JSON array of objects, or as Parquet."""
    if form == "parquet":
        sink = io.BytesIO()
        try:
            pq.write_table(answer, sink)
        except pa.ArrowNotImplementedError as error:
            raise UserError(f"Parquet cannot hold this answer: {error}; cast that column to VARCHAR.") from None
        return sink.getvalue()
    if form == "csv":
        return csv_text(answer.column_names, (map(plain, row) for row in rows_of(answer))).encode()
    rows = [
        {name: _json_value(value) for name, value in zip(answer.column_names, row, strict=True)}
        for row in rows_of(answer)
    ]
    return (json.dumps(rows, indent=1, ensure_ascii=False) + "\n").encode()


def plain(value: Any) -> Any:
    """A value as a cell of text: lists and mappings as JSON, times as ISO 8601."""
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return json.dumps(_json_value(value), ensure_ascii=False) if isinstance(value, list | dict) else value


def _json_value(value: Any) -> Any:
    """A value that JSON can hold: times and decimals become text, numbers that are not finite become null."""
    if isinstance(value, dict):
        return {str(name): _json_value(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(inner) for inner in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return value if value is None or isinstance(value, bool | int | str) else str(value)
