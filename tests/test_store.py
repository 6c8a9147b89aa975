"""The results store: SQL over campaigns, old versions of their files, one run and one campaign shown."""

import csv
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from rich.table import Table as RichTable

from conftest import FakeRun, good, one_sentence
from in_process import railyard
from railyard.base import provenance
from railyard.base.errors import UserError
from railyard.base.paths import ROOT
from railyard.base.terminal import fitted, new_table, print_table
from railyard.figures.rows import COMPARED, REDUNDANCY
from railyard.gate.compare import outputs_sha256
from railyard.results import differences, stored
from railyard.results.aggregate import tables_of, write_parquet
from railyard.results.campaigns import StoredCampaign, find_campaigns, find_run_or_campaign
from railyard.results.columns import CAMPAIGN, METADATA_KEY, STORED, TABLES
from railyard.results.query import connect, rows_of, run_query
from railyard.results.records import load_campaign
from railyard.results.upgrade import stored_tables
from railyard.run.folders import locked
from railyard.studies.population import parts
from waiting import wait_until

DATA = Path(__file__).parent / "data"
Make = Callable[..., Path]


def ask(results: Path, sql: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = run_query(connect(results), sql).to_pylist()
    return rows


@pytest.fixture
def results(make_campaign: Make) -> Path:
    """A folder of results with one campaign, whose Parquet files are written, and an exhibit beside it."""
    runs = [FakeRun(), FakeRun(label="sp", scheme="sp", rct_s=[2.0], unfinished_s=[3.0]), FakeRun(seed=9, void=True)]
    out = make_campaign(*runs)
    write_parquet(load_campaign(out)[1], out)
    exhibit: dict[str, Any] = {"schema": 1, "name": "fig8", "title": "ACK paths", "paper_ref": "Fig. 8", "summary": "s"}
    exhibit |= {"command": "railyard run fig8", "arena": "sim", "size": "small", "modelled": False}
    claim = {"id": "fastest-ack-wins-more", "claim": "c", "theirs": "1.2", "ours": "1.3", "verdict": "holds"}
    exhibit |= {"claims": [claim | {"because": "so"}], "provenance": {"created": "2026-01-02T00:00:00+00:00"}}
    exhibit |= {"paper": [{"what": "gain", "theirs": "1.2", "ours": "1.3", "source": "Fig. 8"}]}
    (out.parent / "fig8").mkdir()
    (out.parent / "fig8" / "exhibit.json").write_text(json.dumps(exhibit))
    return out.parent


def test_every_table_has_the_columns_that_are_documented(results: Path) -> None:
    database = connect(results)
    for table in TABLES:
        found = run_query(database, f"FROM {table.name}").schema
        own = table.columns if table.columns[0] is CAMPAIGN else (CAMPAIGN, *table.columns)
        assert {name.name: name.type for name in found} == {column.name: column.type for column in own}, table.name


def test_questions_are_answered_over_all_campaigns(results: Path) -> None:
    sql = "SELECT label, count(*) AS n, max(rct_s) AS worst FROM chunks WHERE NOT void GROUP BY label ORDER BY label"
    assert ask(results, sql) == [{"label": "sp", "n": 2, "worst": 3.0}, {"label": "xlink", "n": 4, "worst": 1.0}]
    [path] = ask(results, "SELECT * FROM paths WHERE path = 'wifi' AND run_id = 'subway-1--xlink--s1'")
    assert (path["down_bytes"], path["is_primary"], path["queue_drops"]) == (700_000, True, 4)
    assert path["down_share"] == pytest.approx(7 / 11)
    assert len(ask(results, "FROM first_frames")) == 2, "a void run is no measurement"
    [state] = ask(results, "SELECT state, runs_asked, runs_whole, runs_void, schema FROM campaigns WHERE schema = 5")
    assert state == {"state": "complete", "runs_asked": 3, "runs_whole": 3, "runs_void": 1, "schema": 5}
    assert ask(results, "SELECT exhibit, id, verdict FROM claims") == [
        {"exhibit": "fig8", "id": "fastest-ack-wins-more", "verdict": "holds"}
    ]
    assert ask(results, "SELECT theirs, ours FROM paper") == [{"theirs": "1.2", "ours": "1.3"}]
    assert ask(results, "SELECT arena, modelled, created FROM exhibits")[0]["arena"] == "sim"


def test_a_file_of_a_campaigns_own_is_a_table_too(results: Path) -> None:
    pq.write_table(tables_of([])["chunks"].select(["bytes"]), results / "campaign" / "samples.parquet")
    assert ask(results, "SELECT * FROM samples") == []
    assert {row["column_name"] for row in ask(results, "DESCRIBE samples")} == {"campaign", "bytes"}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT content FROM read_text('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM glob('/*')",
        "COPY runs TO 'stolen.csv'",
        "ATTACH 'other.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "DROP VIEW runs",
        "CREATE TABLE mine AS FROM runs",
        "SELECT 1; SELECT 2",
        "SELECT * FROM tables",
        "SELECT no_such_column FROM runs",
        "SELEC",
        "",
    ],
)
def test_a_query_reads_the_results_and_nothing_else(
    results: Path, sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    with pytest.raises(UserError) as caught:
        ask(results, sql)
    assert "\n" not in str(caught.value) and str(caught.value).endswith(".")
    assert list(Path.cwd().iterdir()) == []


def test_answers_come_as_table_csv_json_and_parquet(results: Path, tmp_path: Path) -> None:
    sql = "SELECT label, first_frame_s, started, parameters FROM runs WHERE seed = 1 ORDER BY label"
    query = ("query", sql, "--results", str(results))
    table = railyard(*query)
    assert table.returncode == 0 and "2 rows" in table.stdout and "xlink" in table.stdout
    rows = list(csv.DictReader(io.StringIO(railyard(*query, "--format", "csv").stdout)))
    assert [(row["label"], float(row["first_frame_s"])) for row in rows] == [("sp", 0.4), ("xlink", 0.4)]
    answer = json.loads(railyard(*query, "--format", "json").stdout)
    assert answer[1] == {
        "label": "xlink",
        "first_frame_s": 0.4,
        "started": "2026-01-02T03:04:05+00:00",
        "parameters": {},
    }
    file = tmp_path / "answer.parquet"
    assert railyard(*query, "--format", "parquet", "--out", str(file)).returncode == 0
    assert pq.read_table(file).column("label").to_pylist() == ["sp", "xlink"]


def test_an_answer_into_a_pipe_leaves_the_pipe(results: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with os.fdopen(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), encoding="utf-8") as reader:
        query = ("query", "SELECT 6 * 7 AS answer", "--results", str(results), "--format", "csv")
        assert railyard(*query, "--out", str(pipe)).returncode == 0
        assert reader.read().split() == ["answer", "42"]
    assert pipe.is_fifo() and [file.name for file in tmp_path.iterdir() if file.name.startswith(".pipe")] == []


ENDLESS = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT max(n) FROM t"


def test_ctrl_c_ends_a_query_while_it_computes(results: Path) -> None:
    command = [sys.executable, "-m", "railyard", "query", ENDLESS, "--results", str(results)]
    ticks = 3 * os.sysconf("SC_CLK_TCK")  # of which its start takes about half
    with subprocess.Popen(command, stderr=subprocess.PIPE) as program:
        try:
            stat = Path(f"/proc/{program.pid}/stat")
            wait_until(lambda: int(stat.read_text().split()[13]) > ticks, "the query did not compute", 60)
            program.send_signal(signal.SIGINT)
            assert program.communicate(timeout=60)[1] == b""
        finally:
            program.kill()
    assert program.returncode == -signal.SIGINT  # a shell says 130


def test_rows_of_an_answer_come_before_all_are_converted() -> None:
    """Ctrl-C is heard between them. The second part cannot be converted."""
    days = pa.chunked_array([pa.array([0], pa.date32()), pa.array([10_000_000], pa.date32())])
    rows = rows_of(pa.table({"day": days}))
    assert next(rows) == (date(1970, 1, 1),)
    with pytest.raises(UserError, match="column day"):
        next(rows)


def test_mistakes_end_in_one_sentence(results: Path, tmp_path: Path) -> None:
    for arguments, words in (
        (("query", "SELECT lable FROM runs", "--results", str(results)), '"label"'),
        (("query", "SELECT 1", "--results", str(tmp_path / "nowhere")), "there are no results"),
        (("query", "SELECT 1", "--results", str(results), "--format", "jsn"), "did you mean 'json'?"),
        (("query", "SELECT 1", "--results", str(results), "--out", "x"), "--format"),
        (("query", "SELECT DATE '20000-01-01' AS day", "--results", str(results)), "column day: a time outside"),
        (("query", "SELECT INTERVAL 1 MONTH", "--results", str(results), "--format", "parquet"), "Parquet cannot hold"),
        (("show", "campain", "--results", str(results)), "did you mean 'campaign'?"),
    ):
        done = railyard(*arguments)
        assert (done.returncode, done.stderr.count("\n"), done.stdout) == (2, 1, ""), done.stderr
        assert words in done.stderr


def test_an_unfinished_campaign_can_be_asked(results: Path) -> None:
    out = results / "campaign"
    before = {name: table.num_rows for name, table in stored_tables(StoredCampaign("c", out)).items()}
    shutil.rmtree(out / "runs" / "subway-1--sp--s1")
    assert {row["label"] for row in ask(results, "FROM runs")} == {"xlink"}, "the old file has a run that is gone"
    for table in STORED:
        (out / f"{table.name}.parquet").unlink()
    after = {name: table.num_rows for name, table in stored_tables(StoredCampaign("c", out)).items()}
    assert after == {"runs": 2, "chunks": before["chunks"] - 2, "links": before["links"] - 4}
    assert ask(results, "SELECT state FROM campaigns WHERE campaign = 'campaign'") == [{"state": "partial 2/3"}]


def test_a_play_that_failed_counts_in_the_exported_tables_too(make_campaign: Make) -> None:
    """It counts with its time limit of 60 s, as in the printed tables. Void runs and crashed programs do not count."""
    runs = [
        FakeRun(play_time_s=30.0, rebuffer_time_s=1.0),
        FakeRun(seed=2, outcome="connect_failed", rct_s=[], first_frame_s=None, play_time_s=0.0, rebuffer_time_s=0.0),
        FakeRun(seed=3, outcome="crashed", rct_s=[], first_frame_s=None, play_time_s=0.0, rebuffer_time_s=0.0),
    ]
    out = make_campaign(*runs)
    write_parquet(load_campaign(out)[1], out)
    limit_s = load_campaign(out)[1][1].limit_s
    assert limit_s > 0
    first, failed, crashed = ask(
        out.parent,
        "SELECT seed, failed, first_frame_s, first_frame_counted_s AS f, rebuffer_time_s AS r, rebuffer_counted_s AS c "
        "FROM runs ORDER BY seed",
    )
    assert first == {"seed": 1, "failed": False, "first_frame_s": 0.4, "f": 0.4, "r": 1.0, "c": 1.0}
    assert failed == {"seed": 2, "failed": True, "first_frame_s": None, "f": limit_s, "r": 0.0, "c": limit_s}
    assert not crashed["failed"]
    assert ask(out.parent, "SELECT seed, first_frame_s, shown FROM first_frames ORDER BY seed") == [
        {"seed": 1, "first_frame_s": 0.4, "shown": True},
        {"seed": 2, "first_frame_s": limit_s, "shown": False},
    ]


def test_the_tables_say_all_that_comparing_needs(make_campaign: Make) -> None:
    """Failed plays, stalls and requests that never completed included."""
    dead: dict[str, Any] = {"outcome": "connect_failed", "rct_s": [], "first_frame_s": None, "play_time_s": 0.0}
    runs = [
        FakeRun(label=label, scheme=label, seed=seed, start_offset_ms=60_000 * seed, rct_s=[0.3 * seed, rct_s])
        for label, rct_s in (("vanilla-mp", 1.0), ("xlink", 0.5))
        for seed in range(1, 8)
    ]
    runs[3] = replace(runs[3], unfinished_s=[4.0], rebuffer_time_s=2.0)
    runs[8] = replace(runs[8], rebuffer_time_s=0.0, **dead)
    runs[9] = replace(runs[9], outcome="connection_lost", play_time_s=3.0)
    out = make_campaign(*runs)
    loaded = load_campaign(out)[1]
    write_parquet(loaded, out)
    tables = stored_tables(StoredCampaign("c", out))
    assert stored.can_be_compared(tables)
    kept = stored.runs_of(tables)
    assert [(run.outcome, run.failed, run.ended_s, run.chunks) for run in kept] == [
        (run.outcome, run.failed, run.ended_s, run.chunks) for run in loaded
    ]
    both = [differences.differences(one, [("xlink", "vanilla-mp")], (*COMPARED, REDUNDANCY)) for one in (loaded, kept)]
    assert list(map(differences.record_of, both[0])) == list(map(differences.record_of, both[1]))
    assert any(one.change is not None for one in both[0])
    assert differences.shortages(kept, both[1]) == differences.shortages(loaded, both[0])
    old = stored_tables(StoredCampaign("old", DATA / "results-schema-3"))
    assert not stored.can_be_compared(old), "it did not say when each play ended"


def test_campaigns_of_schema_2_can_be_asked_and_written_again(tmp_path: Path) -> None:
    rows = ask(DATA / "results-schema-2", "SELECT label, first_frame_s, failed, rebuffer_counted_s FROM runs")
    assert [row["label"] for row in rows] == ["sp", "sp:lte", "xlink"]
    assert all(row["first_frame_s"] > 0 and not row["failed"] for row in rows)
    assert all(row["rebuffer_counted_s"] is not None for row in rows), "no play failed: it is what was recorded"
    assert len(ask(DATA / "results-schema-2", "FROM first_frames WHERE shown")) == 3
    shutil.copytree(DATA / "results-schema-2", tmp_path / "old")
    write_parquet(load_campaign(tmp_path / "old")[1], tmp_path / "old")
    assert [row["failed"] for row in ask(tmp_path / "old", "SELECT failed FROM runs")] == [False] * 3


def test_campaigns_of_schema_3_can_be_asked_shown_and_written_again(tmp_path: Path) -> None:
    """Runs on the wall clock, judged by their deliveries: what lateness can have added was not known."""
    rows = ask(DATA / "results-schema-3", "SELECT label, void, failed, lateness_p99_us, late_share FROM runs")
    assert [(row["label"], row["void"], row["failed"]) for row in rows] == [
        ("sp", False, False),
        ("sp:lte", False, False),
        ("xlink", False, False),
    ]
    assert all(row["lateness_p99_us"] > 0 and row["late_share"] is None for row in rows)
    assert ask(DATA / "results-schema-3", "SELECT DISTINCT late_bound_s FROM chunks") == [{"late_bound_s": None}]
    shutil.copytree(DATA / "results-schema-3", tmp_path / "old")
    shown = railyard("show", str(tmp_path / "old"))
    assert shown.returncode == 0 and "subway-1--sp_lte--s1" in shown.stdout
    write_parquet(load_campaign(tmp_path / "old")[1], tmp_path / "old")
    again = ask(tmp_path / "old", "SELECT label, void, failed, lateness_p99_us, late_share FROM runs")
    assert again == rows
    assert ask(tmp_path / "old", "SELECT DISTINCT late_bound_s FROM chunks") == [{"late_bound_s": None}]


def test_a_rate_over_campaigns_of_all_schemas_leaves_no_stall_out(tmp_path: Path) -> None:
    """Tables of schemas 1 and 2 had no column of the stalls that count, and of their play time all was summed."""
    for schema in (1, 2, 3):
        shutil.copytree(DATA / f"results-schema-{schema}", tmp_path / f"schema-{schema}")
    both = "sum(rebuffer_counted_s) / sum(play_time_s) AS counted, sum(rebuffer_time_s) / sum(play_time_s) AS recorded"
    [rates] = ask(tmp_path, f"SELECT {both}, count(failed) AS known FROM runs")  # noqa: S608  no input
    assert rates["known"] == 9
    assert rates["counted"] == pytest.approx(rates["recorded"]) and rates["counted"] > 0


def test_of_an_old_play_that_failed_only_what_is_known_is_said(make_campaign: Make) -> None:
    dead = FakeRun(seed=2, outcome="connect_failed", rct_s=[], first_frame_s=None, play_time_s=0.0, rebuffer_time_s=0.0)
    out = make_campaign(FakeRun(), dead)
    write_parquet(load_campaign(out)[1], out)
    for name in ("runs", "chunks", "links"):
        table = pq.read_table(out / f"{name}.parquet")
        old = [column for column in table.column_names if column not in ("failed", "ended_s", "given_up_bytes")]
        old = [column for column in old if "counted" not in column]
        pq.write_table(table.select(old).replace_schema_metadata({METADATA_KEY: "2"}), out / f"{name}.parquet")
    rows = ask(out.parent, "SELECT failed, first_frame_counted_s AS f, rebuffer_counted_s AS r FROM runs ORDER BY seed")
    assert rows == [{"failed": False, "f": 0.4, "r": 0.5}, {"failed": True, "f": None, "r": None}]


def test_a_query_says_which_tables_are_older(tmp_path: Path, results: Path) -> None:
    assert railyard("query", "SELECT 1", "--results", str(results)).stderr == ""
    shutil.copytree(DATA / "results-schema-2", tmp_path / "old" / "two")
    asked = good(railyard("query", "SELECT count(*) FROM chunks", "--results", str(tmp_path / "old")))
    assert "Tables of an earlier version: two. Columns" in asked.stderr and "railyard report" in asked.stderr


def test_a_report_where_the_traces_are_gone_keeps_the_oracle_that_is_known(make_campaign: Make) -> None:
    out = make_campaign(FakeRun())
    told = [
        replace(run, chunks=[replace(c, oracle_s=0.1, oracle_play_s=0.2) for c in run.chunks])
        for run in load_campaign(out)[1]
    ]
    write_parquet(told, out)
    assert all(chunk.oracle_s is None for run in load_campaign(out)[1] for chunk in run.chunks)
    good(railyard("report", str(out)))
    rows = ask(out.parent, "SELECT oracle_s, oracle_play_s, efficiency, rct_s FROM chunks")
    assert {(row["oracle_s"], row["oracle_play_s"]) for row in rows} == {(0.1, 0.2)}
    assert all(row["efficiency"] == pytest.approx(0.1 / row["rct_s"]) for row in rows)
    assert ask(out.parent, "SELECT efficiency > 0 AS is_known FROM runs") == [{"is_known": True}]


# The values in files of the first schema, which were written when that was the present one.
EFFICIENCY_OF_SCHEMA_1 = {"sp": 0.3415, "sp:lte": 0.9103, "xlink": 0.7758}


def test_campaigns_of_schema_1_can_be_asked() -> None:
    results = DATA / "results-schema-1"
    rows = ask(results, "SELECT label, efficiency, started, parameters FROM runs ORDER BY label")
    assert {row["label"]: round(row["efficiency"], 4) for row in rows} == EFFICIENCY_OF_SCHEMA_1
    assert all(row["started"] is None and row["parameters"] is None for row in rows), "it did not say"
    path = ask(
        results, "SELECT up_bytes, down_bytes, queue_drops FROM paths WHERE is_primary AND run_id LIKE '%xlink%'"
    )
    assert path == [{"up_bytes": 6072, "down_bytes": 155189, "queue_drops": 0}]
    assert ask(results, "SELECT sum(departed_bytes) AS b FROM links WHERE direction = 'down'")[0]["b"] == 2_418_506
    assert ask(results, "SELECT count(*) AS n FROM chunks WHERE completed") == [{"n": 18}]


def test_campaigns_of_schema_1_can_be_shown_and_reported(tmp_path: Path) -> None:
    shutil.copytree(DATA / "results-schema-1", tmp_path / "old")
    shown = railyard("show", str(tmp_path / "old"))
    assert shown.returncode == 0 and "subway-1--sp_lte--s1" in shown.stdout
    record, runs = load_campaign(tmp_path / "old")
    write_parquet(runs, tmp_path / "old")
    assert pq.read_schema(tmp_path / "old" / "runs.parquet").metadata[b"railyard_schema"] == b"5"
    [first, *_] = ask(tmp_path / "old", "SELECT started, bitrate_bps FROM runs")
    assert first["bitrate_bps"] == 2_000_000 and first["started"] is not None
    assert record["schema"] == 1
    of_files = ask(DATA / "results-schema-1", "SELECT DISTINCT late_bound_s FROM chunks")
    assert of_files == [{"late_bound_s": None}], "it did not say"
    assert ask(tmp_path / "old", "SELECT DISTINCT late_bound_s FROM chunks") == [{"late_bound_s": 0.0}], "virtual time"


def test_files_of_a_later_schema_are_refused_by_name(results: Path) -> None:
    file = results / "campaign" / "runs.parquet"
    table = pq.read_table(file)
    pq.write_table(table.replace_schema_metadata({"railyard_schema": "99"}), file)
    with pytest.raises(UserError, match=r"runs.parquet: schema 99 is newer"):
        connect(results)
    file.write_bytes(b"PAR1 no more")
    with pytest.raises(UserError, match=r"runs.parquet: cannot be read: .*; `railyard report .*campaign` writes it"):
        connect(results)


def test_campaigns_are_listed_with_their_state(results: Path) -> None:
    (results / "campaign" / "runs" / "subway-1--sp--s1" / "run.json").unlink()
    (results / "nested" / "inner").mkdir(parents=True)
    (results / "nested" / "inner" / "campaign.json").write_text("{")
    assert {campaign.name: campaign.state for campaign in find_campaigns(results)} == {
        "campaign": "partial 2/3",
        "fig8": "complete",
        "nested/inner": "unreadable",
    }
    with locked(results / "campaign"):
        assert find_campaigns(results)[0].state == "running 2/3"
    done = good(railyard("show", "--results", str(results)))
    assert "partial 2/3" in done.stdout and "fig8: 1 holds" in done.stdout and "demo" in done.stdout


def test_a_run_is_found_by_its_name(results: Path) -> None:
    run = results / "campaign" / "runs" / "subway-1--sp--s1"
    for name in (str(run), "subway-1--sp--s1", "campaign/subway-1--sp--s1"):
        assert find_run_or_campaign(name, results).resolve() == run.resolve()
    assert find_run_or_campaign("campaign", results) == (results / "campaign").resolve()
    shutil.copytree(results / "campaign", results / "copy")
    with pytest.raises(UserError, match=r"say which: campaign/subway-1--sp--s1, copy/subway-1--sp--s1"):
        find_run_or_campaign("subway-1--sp--s1", results)


def test_the_commands_shown_repeat_a_run_to_the_byte(tmp_path: Path) -> None:
    (tmp_path / "unit.yaml").write_text(
        "name: unit\narena: sim\npairs: [subway-1]\nschemes: [{scheme: xlink, t_th1_ms: 100}]\nseeds: 1\n"
        "player: {duration_s: 2, bitrate_bps: 1000000}\ntime_limit_s: 10\n"
    )
    assert railyard("run", str(tmp_path / "unit.yaml"), "--out", str(tmp_path / "out")).returncode == 0
    [run] = (tmp_path / "out" / "runs").iterdir()
    shown = good(railyard("show", str(run)))
    for words in ("t_th1_ms 100", "wifi (wifi)", "lte (lte)", "re-injected", "bitrate_bps 1000000", "efficiency"):
        assert words in shown.stdout, words
    lines = [line.strip() for line in shown.stdout.splitlines()]
    root = Path(__file__).parents[1]
    commands = [line for line in lines if line.startswith(("mkdir", "build/bin/", str(root / "build")))]
    assert len(commands) == 2, shown.stdout
    script = " && ".join(commands).replace("again", str(tmp_path / "again"))
    subprocess.run(["sh", "-ec", script], cwd=root, check=True, timeout=60)
    assert railyard("repeat", str(run), "--yes", "--out", str(tmp_path / "third")).returncode == 0
    assert outputs_sha256(tmp_path / "third") == outputs_sha256(run)
    third = railyard("show", str(tmp_path / "third")).stdout
    assert "third/job.json --out again" in third, third  # not into the folder that it repeats
    one_sentence(railyard("repeat", str(run), "--yes", "--out", str(tmp_path / "third")), "is there already")
    repeated = [file for file in (tmp_path / "again").rglob("*") if file.is_file()]
    assert {"player.jsonl", "server.jsonl", "mpshell.json"} <= {file.name for file in repeated}
    for file in repeated:
        assert file.read_bytes() == (run / file.relative_to(tmp_path / "again")).read_bytes(), file.name


def test_a_population_is_a_campaign_whose_plays_can_be_asked(results: Path) -> None:
    folder = results / "population"
    folder.mkdir()
    play: dict[str, Any] = dict.fromkeys(parts.SCHEMA.names)
    play |= {"identity": "a", "day": 1, "viewer": 7, "arm": "xlink", "scheme": "xlink", "parameters": "{}"}
    play |= {"scene": "home", "pair": "subway-1", "primary": "wifi", "rct_s": [0.5, 1.5]}
    pq.write_table(pa.Table.from_pylist([play], schema=parts.SCHEMA), folder / parts.PLAYS_FILE)
    record = {"population": {"name": "population"}, "command": "railyard population", "git": {"revision": "d" * 40}}
    (folder / "population.json").write_text(json.dumps(record | {"created": "2026-01-02T03:04:05+00:00"}))
    assert ask(results, "SELECT campaign, viewer, unnest(rct_s) AS rct FROM plays ORDER BY rct DESC LIMIT 1") == [
        {"campaign": "population", "viewer": 7, "rct": 1.5}
    ]
    exhibit = json.loads((results / "fig8" / "exhibit.json").read_text()) | {"name": "fig12"}
    shutil.copytree(folder, results / "fig12")
    (results / "fig12" / "exhibit.json").write_text(json.dumps(exhibit))
    [row] = ask(results, "SELECT campaign, runs_asked FROM campaigns WHERE experiment = 'fig12'")
    assert row == {"campaign": "fig12", "runs_asked": None}, "the population's name is not the exhibit's"
    [row] = ask(results, "SELECT state, arena, runs_whole FROM campaigns WHERE experiment = 'population'")
    assert row == {"state": "complete", "arena": "sim", "runs_whole": 1}
    under_way = results / "under-way" / "parts"
    under_way.mkdir(parents=True)
    shutil.copy(folder / parts.PLAYS_FILE, under_way / "part-0.parquet")
    [row] = ask(results, "SELECT state, runs_whole FROM campaigns WHERE campaign = 'under-way'")
    assert row == {"state": "partial", "runs_whole": 1}


def test_a_table_that_is_wider_than_the_terminal_comes_in_parts_and_no_figure_is_cut() -> None:
    table = RichTable(title="wide")
    names = [f"figure-{number}" for number in range(12)]
    for name in ("scheme", *names):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_row("vanilla-mp", *(f"{number}.123456" for number in range(12)))
    out = io.StringIO()
    narrow = Console(file=out, width=60)
    parts = fitted(narrow, table)
    assert len(parts) > 1 and all(part.columns[0].header == "scheme" for part in parts)
    print_table(narrow, table)
    text = out.getvalue()
    assert "…" not in text and max(map(len, text.splitlines())) <= 60 and text.count("wide") == 1
    assert all(name in text for name in names) and all(f"{number}.123456" in text for number in range(12))
    assert fitted(Console(file=out, width=400), table) == [table]


def test_names_that_leave_no_room_for_a_column_have_several_lines() -> None:
    names = [f"vanilla-mp,scheduler=minrtt,cc={cc}" for cc in ("cubic", "cubic-tolerant")]
    table = new_table("scheme", "against", "difference", no_wrap=True)
    table.add_row(*names, "−12 % [−23, +7]")
    out = io.StringIO()
    print_table(Console(file=out, width=60), table, keys=2)
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= 60
    starts = [lines[1].index(head) for head in ("scheme", "against", "difference")]
    cells = ["".join(line[start:end].strip() for line in lines[3:]) for start, end in pairwise([*starts, 60])]
    assert cells == [*names, "−12 % [−23, +7]"]


def test_only_a_new_file_that_can_change_a_program_makes_a_work_tree_dirty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*words: str) -> None:
        subprocess.run(("git", "-c", "user.name=n", "-c", "user.email=e", *words), cwd=tmp_path, check=True)

    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    (tmp_path / "transport").mkdir()
    (tmp_path / "transport" / "a.c").write_text("int a;\n")
    (tmp_path / "Makefile").touch()
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "one")
    (tmp_path / "first.yaml").write_text("name: first\n")
    assert provenance.git_state.__wrapped__()["dirty"] is False
    (tmp_path / "transport" / "b.c").write_text("int b;\n")
    assert provenance.git_state.__wrapped__()["dirty"] is True
    (tmp_path / "transport" / "b.c").unlink()
    (tmp_path / "transport" / "a.c").write_text("int c;\n")
    assert provenance.git_state.__wrapped__()["dirty"] is True


def test_the_revision_of_another_repository_around_the_tree_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release that was unpacked below a home directory whose configuration files are under git."""
    author = ("-c", "user.name=n", "-c", "user.email=e")
    tree = tmp_path / "railyard"
    tree.mkdir()
    (tree / "Makefile").touch()
    monkeypatch.setattr(provenance, "ROOT", tree)
    for words in (("init", "-q"), (*author, "commit", "-q", "--allow-empty", "-m", "x")):
        subprocess.run(("git", *words), cwd=tmp_path, check=True)
    assert provenance.git_state.__wrapped__() == {"revision": None, "dirty": None}
    for further in (("add", "railyard"), (*author, "commit", "-qm", "y")):
        subprocess.run(("git", *further), cwd=tmp_path, check=True)
    assert len(provenance.git_state.__wrapped__()["revision"] or "") == 40, "the tree is a part of that repository"


def test_a_file_that_changed_is_hashed_again(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"one")
    first = provenance.sha256_once(tmp_path / "file")
    (tmp_path / "other").write_bytes(b"two")
    (tmp_path / "other").replace(tmp_path / "file")
    assert provenance.sha256_once(tmp_path / "file") == provenance.sha256_of(tmp_path / "file") != first


def test_the_revision_of_another_user_s_clone_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Root has such a one in a container, and mpshell needs root."""
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")  # git's own means
    assert subprocess.run(["git", "status"], cwd=ROOT, capture_output=True, check=False).returncode == 128
    assert len(provenance.git_state.__wrapped__()["revision"] or "") == 40


def test_versions_name_each_library_that_the_simulator_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    makefile = (ROOT / "Makefile").read_text()
    packages = next(line for line in makefile.splitlines() if line.startswith("PKGS := ")).split()[2:]
    header = tmp_path / "intel-ipsec-mb.h"
    header.write_text('/* */\n#define IMB_VERSION_STR "1.3.0"\n')
    monkeypatch.setattr(provenance, "GCM_HEADER", header)
    versions = provenance.versions.__wrapped__()
    assert versions["intel-ipsec-mb"] == "1.3.0"
    assert all((versions[name] or "")[0].isdigit() for name in packages)
    header.unlink()
    assert provenance.versions.__wrapped__()["intel-ipsec-mb"] is None
