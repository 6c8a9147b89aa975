"""Reads the tables of a campaign, of any version of the schema, as tables of the present one.

Schema 1 had no `links.parquet`, and older schemas had fewer columns. A value that an old file does not have, and that
does not follow from it, is null.
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from railyard.base.errors import UserError
from railyard.base.files import check_regular
from railyard.results.aggregate import tables_of
from railyard.results.campaigns import StoredCampaign
from railyard.results.columns import CAMPAIGN, LINKS, METADATA_KEY, RUNS, SCHEMA, STORED, StoredTable
from railyard.results.records import is_failed, load_run

SCHEMA_OF_FAILURES = 3


def read_parquet(file: Path, columns: list[str] | None = None, *, remedy: str = "") -> pa.Table:
    """Reads a Parquet file. Raises UserError. `remedy`: the remedy in its message, if not `railyard report`."""
    try:
        check_regular(file)
        return pq.read_table(file, columns=columns)
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(file, error, remedy) from None


def _unreadable(file: Path, error: Exception, remedy: str = "") -> UserError:
    cause = " ".join(str(error).split()).rstrip(".")
    return UserError(
        f"{file}: cannot be read: {cause}; {remedy or f'`railyard report {file.parent}` writes it again'}."
    )


def version_of(file: Path) -> int:
    """The schema of a Parquet file. Raises UserError if this program cannot read it."""
    try:
        check_regular(file)
        metadata = pq.read_schema(file).metadata or {}
        version = int(metadata.get(METADATA_KEY.encode(), b"0"))
    except (OSError, ValueError) as error:
        raise _unreadable(file, error) from None
    if version > SCHEMA:
        raise UserError(f"{file}: schema {version} is newer than this program's {SCHEMA}; use a newer railyard.")
    if version < 1:
        raise UserError(f"{file}: it does not say its schema; `railyard report {file.parent}` writes it again.")
    return version


def as_now(table: pa.Table, wanted: StoredTable) -> pa.Table:
    """The wanted columns, in their order and types. Columns that are missing in the table are null."""
    columns = [column for column in wanted.columns if column is not CAMPAIGN]
    schema = StoredTable(wanted.name, wanted.about, tuple(columns)).arrow_schema()
    arrays = [
        table.column(field.name).cast(field.type)
        if field.name in table.column_names
        else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def _links_of_schema_1(runs: pa.Table) -> pa.Table:
    """The bytes of each link, from the runs' lists of paths. These count a path's drops over both links, so drops are
    null."""
    parents = pc.list_parent_indices(runs.column("paths"))
    paths = pc.list_flatten(runs.column("paths"))
    run_ids = runs.column("run_id").take(parents)
    names = pc.struct_field(paths, "name")
    halves = [
        pa.table(
            {
                "run_id": run_ids,
                "path": names,
                "direction": pa.array([direction] * len(run_ids)),
                "departed_bytes": pc.struct_field(paths, f"{direction}_bytes"),
            }
        )
        for direction in ("up", "down")
    ]
    return as_now(pa.concat_tables(halves), LINKS)


def _with_failures(runs: pa.Table) -> pa.Table:
    """Adds the columns about failures, which schemas 1 and 2 lack. Whether a play failed follows from its outcome and
    first frame. A play that did not fail counts with the recorded values. The values of a failed play depend on the
    time limit, which is unknown: they are null, except for the time of a first frame."""
    outcomes, frames = (runs.column(name).to_pylist() for name in ("outcome", "first_frame_s"))
    failed = pa.array(list(map(is_failed, outcomes, frames)))
    stalled = pc.if_else(failed, None, runs.column("rebuffer_time_s"))
    counted = {"failed": failed, "first_frame_counted_s": runs.column("first_frame_s"), "rebuffer_counted_s": stalled}
    for name, column in counted.items():
        runs = runs.set_column(runs.column_names.index(name), name, column)
    return runs


def _of_these_runs(file: Path, campaign: StoredCampaign) -> bool:
    """Whether the file has the same runs as the folder. True if the campaign is kept without its runs' folders."""
    if not (campaign.folder / "runs").is_dir():
        return True
    rows = read_parquet(file, ["run_id"]).column("run_id").to_pylist()
    return sorted(rows) == sorted(folder.name for folder in campaign.whole)


def stored_tables(campaign: StoredCampaign) -> dict[str, pa.Table]:
    """The campaign's tables. If the files are missing or have other runs, they are made from the completed runs."""
    runs_file = campaign.folder / "runs.parquet"
    if not runs_file.is_file() or not _of_these_runs(runs_file, campaign):
        return tables_of([load_run(folder) for folder in campaign.whole])
    version = version_of(runs_file)
    tables: dict[str, pa.Table] = {}
    for table in STORED:
        file = campaign.folder / f"{table.name}.parquet"
        if table is LINKS and version == 1:
            tables[table.name] = _links_of_schema_1(tables["runs"])
            continue
        version_of(file)
        tables[table.name] = as_now(read_parquet(file), table)
    if version < SCHEMA_OF_FAILURES:
        tables[RUNS.name] = _with_failures(tables[RUNS.name])
    return tables
