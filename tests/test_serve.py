"""The web application over HTTP: its pages, access, and answers to bad input."""

import asyncio
import fcntl
import gc
import json
import os
import re
import resource
import shlex
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path
from types import SimpleNamespace
from typing import cast
from urllib.parse import quote, urlencode

import duckdb
import pytest

from conftest import FakeRun, good, one_sentence
from in_process import railyard
from railyard.base.errors import UserError
from railyard.results import differences
from railyard.results.aggregate import write_parquet
from railyard.results.records import Run, load_campaign, load_run
from railyard.run.folders import LOCK
from railyard.serve import connections, figures, leaderboard, starting, store
from railyard.serve.figures import distribution, where
from railyard.serve.work import UnfinishedError, Work
from railyard.stats.intervals import Interval
from waiting import wait_until
from web_server import WAIT_S, Make, Server, campaign

MARKUP = "<img src=x onerror=alert(1)>"


@pytest.fixture
def server(make_campaign: Make) -> Iterator[Server]:
    out = campaign(make_campaign)
    with Server(out.parent) as running:
        yield running


def test_a_campaign_leads_to_its_runs_and_a_comparison(server: Server) -> None:
    listed = server.get("/")
    assert listed.status == 200 and 'href="/campaign/campaign"' in listed.text and "14" in listed.text
    page = server.get("/campaign/campaign")
    assert page.status == 200 and "14 of 14" in page.text
    assert 'class="n">RCT median s<' in page.text and 'class="n">first frame median s<' in page.text
    figure = re.search(r'data-figure="figure-1">([^<]*)<', page.text)
    assert figure is not None
    traces = json.loads(figure[1])["data"]
    assert {trace["name"] for trace in traces} == {"vanilla-mp", "xlink"}
    [slowest] = [trace["customdata"][-1][0] for trace in traces if trace["name"] == "vanilla-mp"]
    assert re.fullmatch(r"/run/campaign/subway-1--vanilla-mp--s\d\?chunk=1#chunk", slowest)
    run = server.get("/run/campaign/subway-1--xlink--s3")
    assert (
        run.status == 200
        and "xlink on subway-1" in run.text
        and 'href="/run/campaign/subway-1--vanilla-mp--s3"' in run.text
    )
    chosen = server.get("/campaign/campaign?scheme=xlink&of=first_frame")
    assert "7 of 7" in chosen.text and "subway-1--vanilla-mp--s1" not in chosen.text


def test_a_chunk_that_was_never_requested_leads_nowhere_and_quantiles_are_nearest_ranks(make_campaign: Make) -> None:
    cut = FakeRun(label="cut", scheme="sp", outcome="time_limit", rct_s=[0.2, 0.4, 0.6, 0.8], unfinished_s=[30.0])
    out = campaign(make_campaign, [cut])
    file = out / "runs" / cut.run_id / "run.json"
    record = json.loads(file.read_text())
    record["config"] |= {"time_limit_s": 60, "player": {"bitrate_bps": 8000, "duration_s": 8, "chunk_bytes": 1000}}
    file.write_text(json.dumps(record))
    write_parquet(load_campaign(out)[1], out)
    with Server(out.parent) as server:
        text = server.get("/campaign/campaign?scheme=cut").text
    assert all(f"chunk {number}, never requested" in text for number in (5, 6, 7))
    assert f'href="/run/campaign/{cut.run_id}?chunk=4#chunk">explain chunk 4<' in text
    row = re.search(r"time limit</td>\n(.*)</tr>", text)
    assert row is not None and re.findall(r'"n">([^<]*)', row[1])[2:4] == ["0.800", "≥ 60.000"], "4th and 8th of 8"


def test_a_distribution_of_many_requests_has_each_of_the_slowest_and_counts_those_that_never_came(
    make_campaign: Make,
) -> None:
    slow = FakeRun(rct_s=[ms / 1000 for ms in range(1, 2001)], unfinished_s=[9.0] * 500, outcome="time_limit")
    known = store.Store(make_campaign(slow).parent).find("campaign")

    def drawn(name: str) -> dict[str, list[float]]:
        drawing = distribution(known, name, *where([], []))
        assert drawing is not None
        [trace] = json.loads(drawing.json)["data"]
        return {axis: trace[axis] for axis in "xy"}

    rct = drawn("rct")
    assert rct["x"][-40:] == pytest.approx([ms / 1000 for ms in range(1961, 2001)])
    assert (rct["x"][0], rct["y"][0], rct["y"][-1]) == (0.001, 1 / 2500, 0.8) and len(rct["x"]) < 250
    assert drawn("redundancy") == {"x": [pytest.approx(5.0)], "y": [1.0]}, "in percent"


def test_a_scheme_keeps_its_colour_where_others_are_left_out_and_the_order_of_the_experiment(
    make_campaign: Make,
) -> None:
    labels = ["narrow", "late", "early"]
    known = store.Store(make_campaign(*(FakeRun(label=one) for one in labels)).parent).find("campaign")

    def colours(*chosen: str) -> dict[str, str]:
        drawing = distribution(known, "rct", *where([], chosen))
        assert drawing is not None
        return {trace["name"]: trace["line"]["color"] for trace in json.loads(drawing.json)["data"]}

    every = colours()
    assert list(every) == labels and len(set(every.values())) == 3
    assert colours("early") == {"early": every["early"]}


def test_the_comparison_is_that_of_the_command(server: Server) -> None:
    page = server.get("/compare?campaign=campaign&against=vanilla-mp")
    runs = differences.sound(load_campaign(server.results / "campaign")[1])
    found = differences.differences(runs, [("xlink", "vanilla-mp")])
    assert page.status == 200
    for one in found:
        assert one.value_words in page.text and one.ends_words in page.text, one.figure.name
    [sentence] = differences.sentences(found)
    assert sentence in page.text


BAD = (
    ("/nowhere", 404, "no such page"),
    ("/campaign/campain", 404, "did you mean &#39;campaign&#39;?"),
    ("/campaign/../../etc/passwd", 404, "there is no campaign"),
    ("/campaign/%2e%2e%2f%2e%2e%2fetc", 404, "there is no campaign"),
    ("/run/campaign/..%2f..%2fcampaign.json", 404, "has no run"),
    ("/run/campaign/%2e%2e", 404, "has no run"),
    ("/replay/campaign/..", 404, "has no run"),
    ("/report/..", 404, "there is no campaign"),
    ("/report/campaign", 404, "has no report"),
    ("/static/..", 404, "no such page"),
    ("/static/store.py", 404, "no such page"),
    ("/run/campaign/subway-1--xlink--s1?chunk=99", 400, "requested no chunk &#39;99&#39;"),
    ("/run/campaign/subway-1--xlink--s1?chunk=-1", 400, "requested no chunk"),
    ("/campaign/campaign?page=9", 400, "no page 9"),
    ("/campaign/campaign?page=x", 400, "takes a number from 1"),
    ("/campaign/campaign?page=" + "9" * 5000, 400, "takes a number from 1"),
    ("/campaign/campaign?scheme=xlnk", 400, "did you mean &#39;xlink&#39;?"),
    ("/campaign/campaign?order=run_id;DROP", 400, "order takes"),
    ("/campaign/campaign?of=1", 400, "of takes"),
    ("/?arena=no", 400, "arena takes mpshell, not"),
    ("/campaign/campaign?pair=%27+OR+1=1", 400, "has no pair"),
    ("/campaign/campaign?pair=%ff", 400, "cannot be answered"),
    ("/compare?campaign=campaign&against=no", 400, "no run of scheme &#39;no&#39;"),
    ("/compare?campaign=campaign&other=campaign", 400, "the same campaign"),
    ("/leaderboard?figure=beauty", 400, "there is no figure &#39;beauty&#39;"),
)


def test_bad_input_gets_a_sentence(server: Server) -> None:
    for path, status, words in BAD:
        answer = server.get(path)
        assert (answer.status, words.lower() in answer.text.lower()) == (status, True), (path, answer.text)
        assert answer.problem.endswith((".", "?")) and "Traceback" not in answer.text, path


def test_head_is_get_without_the_body(server: Server) -> None:
    for path in ("/", "/static/live.js", "/campaign/campaign", "/nowhere"):
        asked, head = server.ask(path), server.ask(path, "HEAD")
        assert (head.status, head.text) == (asked.status, ""), path
        assert head.headers["Content-Type"] == asked.headers["Content-Type"]
    assert server.ask("/", "HEAD", Host="elsewhere").status == 403


def test_only_pages_of_this_server_may_ask(server: Server) -> None:
    here = f"http://127.0.0.1:{server.port}"
    for headers, status in (
        ({"Host": f"localhost:{server.port}"}, 200),
        ({"Host": f"rebound.example:{server.port}"}, 403),
        ({"Host": "127.0.0.1"}, 403),
        ({"Origin": here}, 200),
        ({"Origin": "http://elsewhere.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": f"http://127.0.0.1:{server.port + 1}"}, 403),
        ({"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "no-cors", "Sec_Fetch_Dest": "image"}, 403),
        ({"Sec_Fetch_Site": "same-site", "Sec_Fetch_Mode": "cors", "Sec_Fetch_Dest": "empty"}, 403),
        ({"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "iframe"}, 403),
        ({"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "document"}, 200),
    ):
        assert server.ask("/", **headers).status == status, headers


def test_a_form_needs_the_token_of_its_page(server: Server) -> None:
    form = {"pair": "subway-1", "scheme": "xlink"}
    cookie = f"railyard_{server.port}_xsrf"
    for answer in (
        server.ask("/start", "POST", urlencode(form)),
        server.ask(
            "/start", "POST", urlencode(form | {"_xsrf": "2|00000000|00|1"}), Cookie=f"{cookie}=2|00000000|11|1"
        ),
        server.post("/start", form, Origin="http://elsewhere.example"),
        server.ask("/job", "POST", "stop="),
    ):
        assert answer.status == 403 and answer.problem
    assert server.job.last is None


def test_the_token_of_another_server_of_this_host_is_left_alone(server: Server) -> None:
    """Cookies do not know ports, and Jupyter's token is `_xsrf` too: it could not read ours."""
    answer = server.ask("/start", Cookie="_xsrf=2|00000000|11|1")
    assert re.findall(r"\w*xsrf(?==)", answer.headers["Set-Cookie"]) == [f"railyard_{server.port}_xsrf"]


@contextmanager
def serving(results: Path, descriptors: int) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A context with `railyard serve` with a limit of descriptors. Yields its port."""
    limited = f'ulimit -n {descriptors}; exec "$0" -m railyard serve --port 0 --results {shlex.quote(str(results))}'
    command = ["bash", "-c", limited, sys.executable]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            place = re.search(r"127\.0\.0\.1:(\d+)", process.stdout.readline())
            assert place is not None
            yield process, int(place[1])
        finally:
            process.terminate()


def status_of(path: str, port: int) -> int:
    with closing(HTTPConnection("127.0.0.1", port, timeout=WAIT_S)) as connection:
        connection.request("GET", path)
        return connection.getresponse().status


def test_whoever_holds_many_connections_keeps_nobody_out(make_campaign: Make) -> None:
    with serving(campaign(make_campaign).parent, 48) as (process, port):
        with ExitStack() as held:
            for _ in range(100):
                held.enter_context(socket.create_connection(("127.0.0.1", port)))
            assert status_of("/campaign/campaign", port) in (200, 202)
        process.terminate()
        assert process.stderr is not None and process.stderr.read() == ""


def test_a_connection_too_many_ends_the_oldest(make_campaign: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 2)
    with Server(make_campaign(FakeRun()).parent) as server, ExitStack() as held:
        place = ("127.0.0.1", server.port)
        first, second, _ = (held.enter_context(socket.create_connection(place, WAIT_S / 4)) for _ in range(3))
        assert first.recv(1) == b""
        second.sendall(f"GET /nowhere HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode())
        assert second.recv(12) == b"HTTP/1.1 404"


@pytest.mark.parametrize("sent", ["", "GET / HTTP/1.1\r\n", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\na"])
def test_a_request_that_does_not_come_whole_ends(
    sent: str, make_campaign: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "IDLE_S", 0.2)
    out = make_campaign(FakeRun())
    with Server(out.parent) as server, socket.create_connection(("127.0.0.1", server.port), WAIT_S / 4) as client:
        client.sendall(sent.encode())
        assert client.recv(1) == b""


def test_without_descriptors_the_server_says_so_once_a_second_and_goes_on(make_campaign: Make) -> None:
    with serving(campaign(make_campaign).parent, 48) as (process, port):
        assert process.stderr is not None
        highest = max(int(one.name) for one in Path(f"/proc/{process.pid}/fd").iterdir())
        before = resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (highest + 1, 48))
        with socket.create_connection(("127.0.0.1", port)):
            said = "railyard: a connection cannot be taken: Too many open files; trying again.\n"
            assert process.stderr.readline() == said
            resource.prlimit(process.pid, resource.RLIMIT_NOFILE, before)
            assert status_of("/", port) == 200
        process.terminate()
        assert set(process.stderr.read().splitlines(keepends=True)) <= {said}


def test_every_page_says_that_nothing_from_elsewhere_may_run(server: Server) -> None:
    for path in ("/", "/campaign/campaign", "/start", "/nowhere", "/static/live.js"):
        headers = server.ask(path).headers
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "script-src 'self';" in policy and "frame-ancestors 'none'" in policy
        assert headers["X-Content-Type-Options"] == "nosniff" and "Access-Control-Allow-Origin" not in headers
        assert "Server" not in headers
    (server.results / "campaign" / "report.html").write_text("<script>1</script>")
    policy = server.ask("/report/campaign").headers["Content-Security-Policy"]
    assert policy.startswith("sandbox allow-scripts;") and "allow-same-origin" not in policy
    (server.results / "campaign" / "report.html").unlink()
    (server.results / "campaign" / "report.html").symlink_to("/etc/passwd")
    assert server.ask("/report/campaign").status == 404


def test_names_with_markup_are_text(make_campaign: Make) -> None:
    odd = [FakeRun(label=MARKUP, scheme="xlink", seed=seed, start_offset_ms=60_000 * seed) for seed in range(1, 8)]
    for run in odd:
        run.pair = "subway-1"
    out = make_campaign(*[FakeRun(seed=seed, start_offset_ms=60_000 * seed) for seed in range(1, 8)], *odd)
    record = json.loads((out / "campaign.json").read_text())
    record["experiment"] |= {"description": MARKUP, "name": MARKUP}
    record["command"] = MARKUP
    (out / "campaign.json").write_text(json.dumps(record))
    write_parquet(load_campaign(out)[1], out)
    renamed = out.rename(out.parent / f"a{MARKUP}&b")
    place = quote(renamed.name)
    with Server(out.parent) as server:
        for path in (
            *("/", f"/campaign/{place}", f"/compare?campaign={place}", "/leaderboard"),
            *(f"/run/{place}/{quote(odd[0].run_id, safe='')}", f"/campaign/{quote(MARKUP)}"),
            f"/start?pair={quote(MARKUP)}",
        ):
            answer = server.get(path)
            assert (MARKUP not in answer.text and "&lt;img" in answer.text) or path.startswith("/start"), path
            assert answer.status == (404 if path.endswith(quote(MARKUP)) and "campaign" in path else 200), path


def test_a_folder_whose_name_is_no_utf8_is_told_beside_the_others(make_campaign: Make) -> None:
    results = campaign(make_campaign).parent
    shutil.copytree(results / "campaign", results / os.fsdecode(b"bad\xff"))
    with Server(results) as running:
        page = running.get("/")
    assert page.status == 200 and 'href="/campaign/campaign"' in page.text
    assert "bad\ufffd: the name of this folder is not UTF-8; rename it." in page.text
    asked = railyard("query", "SELECT 1", "--results", str(results))
    one_sentence(asked, "bad\ufffd: the name of this folder is not UTF-8")
    one_sentence(railyard("report", str(results / os.fsdecode(b"bad\xff"))), "a name in it is not UTF-8; rename that")


def test_a_campaign_whose_record_is_gone_has_a_page(make_campaign: Make) -> None:
    out = make_campaign(FakeRun())
    write_parquet(load_campaign(out)[1], out)
    (out / "campaign.json").write_text("{}")
    with Server(out.parent) as server:
        assert server.get("/campaign/campaign").status < 500


def test_a_scheme_under_which_a_program_failed_has_no_figure(make_campaign: Make) -> None:
    failed = FakeRun(label="bad", outcome="error", rct_s=[0.01], rebuffer_time_s=0.0)
    out = make_campaign(FakeRun(), FakeRun(label="bad", seed=2), failed)
    with Server(out.parent) as server:
        for of in ("rct", "stalled", "first_frame"):
            page = server.get(f"/campaign/campaign?of={of}").text
            figure = re.search(r'data-figure="figure-1">([^<]*)<', page)
            assert figure is not None and [one["name"] for one in json.loads(figure[1])["data"]] == ["xlink"], of
        assert "subway-1--bad--s1" in page, "it is listed"
        assert '<th scope="row">bad</th><td class="n">0</td><td class="n">–</td>' in page


def test_a_play_that_failed_is_no_fault_of_a_program_and_its_stall_a_lower_bound(make_campaign: Make) -> None:
    out = make_campaign(FakeRun(outcome="connect_failed", rct_s=[], first_frame_s=None))
    with Server(out.parent) as server:
        page = server.get("/campaign/campaign").text
        assert "<span>0 program faults</span>" in page and "failed</span> connect failed</td>" in page
        assert '<td class="n">–</td><td class="n">≥ 0.500</td><td' in page
        run = server.get("/run/campaign/subway-1--xlink--s1")
        assert "stalled ≥ 0.500 s" in run.text


def test_requests_that_never_completed_have_no_points_and_are_above_an_rct_and_below_an_efficiency() -> None:
    database = duckdb.connect(":memory:")
    database.execute("CREATE TABLE runs AS SELECT 'p' AS pair, 'sp' AS label, false AS void, 'complete' AS outcome")
    database.execute(
        "CREATE TABLE chunks AS SELECT 'p' AS pair, 'sp' AS label, false AS void, 'r' AS run_id, * FROM (VALUES "
        "(0, 1.0, true, 0.8), (1, 2.0, true, 0.5), (2, 9.0, false, 0.1), (3, 3.0, true, NULL)"
        ") of_chunks(chunk, rct_s, completed, efficiency)"
    )
    known = cast(
        "store.Known", SimpleNamespace(ask=lambda sql, parameters: database.execute(sql, parameters).fetchall())
    )

    def points(name: str) -> list[tuple[float, float]]:
        drawn = figures._points(known, figures.DISTRIBUTIONS[name], "NOT void", [])
        return [(float(value), share) for value, share, *_ in drawn["sp"]]

    assert points("rct") == [(1.0, 1 / 4), (2.0, 2 / 4), (3.0, 3 / 4)]
    assert points("efficiency") == [(0.5, 2 / 3), (0.8, 1.0)], "of what is not known nothing is said"


def test_a_campaign_under_way_is_told_and_its_runs_are_read_once(make_campaign: Make) -> None:
    out = make_campaign(*[FakeRun(seed=seed) for seed in range(1, 4)], FakeRun(seed=4, outcome="crashed"))
    record = json.loads((out / "campaign.json").read_text())
    (out / "campaign.json").write_text(json.dumps(record | {"runs": [*record["runs"], "subway-1--xlink--s9"]}))
    with Server(out.parent) as server:
        page = server.get("/campaign/campaign")
        assert page.status == 200 and "partial 4/5" in page.text
        assert '<span class="flag">1</span> program fault<' in page.text
        (out / "runs" / "subway-1--xlink--s1" / "player.jsonl").unlink()  # it is not read again
        FakeRun(seed=9).write(out / "runs")
        page = server.get("/campaign/campaign")
        assert page.status == 200 and "complete" in page.text and "subway-1--xlink--s9" in page.text


def test_a_run_that_no_table_has_yet_is_counted(make_campaign: Make) -> None:
    out = campaign(make_campaign)
    record = json.loads((out / "campaign.json").read_text())
    new = FakeRun(seed=9, void=True)
    new.write(out / "runs")
    (out / "campaign.json").write_text(json.dumps(record | {"runs": [*record["runs"], new.run_id]}))
    known = store.Store(out.parent).find("campaign")
    assert known.overview().void == 1 and known.ask("SELECT count(*) FROM runs") == [(15,)]


def test_campaigns_under_way_come_first_with_the_time_left_by_the_runs_since_their_start(make_campaign: Make) -> None:
    """Two of four runs are from before it was started again, two took 20 s, two are missing."""
    out = make_campaign(*(FakeRun(seed=seed) for seed in range(1, 5)))
    record = json.loads((out / "campaign.json").read_text())
    record["runs"] += ["missing", "missing-too"]
    begin = datetime(2026, 1, 2, tzinfo=UTC)
    others = [shutil.copytree(out, out.parent / name) for name in ("earlier", "later")]
    for minutes, folder in enumerate((out, *others)):
        moment = begin + timedelta(minutes=minutes)
        (folder / "campaign.json").write_text(json.dumps(record | {"started": moment.isoformat()}))
    for run, after_s in zip(sorted((out / "runs").iterdir()), (-3600, -3500, 10, 20), strict=True):
        os.utime(run / "run.json", (begin.timestamp() + after_s,) * 2)
    with (out / LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        rows, _ = store.Store(out.parent).overviews()
    assert [(row.name, row.running, row.left) for row in rows] == [
        ("campaign", True, "about 20 s left"),
        ("later", False, ""),
        ("earlier", False, ""),
    ]


def test_runs_that_cannot_be_read_end_the_wait_with_a_sentence(
    make_campaign: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_slowly(folder: Path) -> Run:
        time.sleep(0.1)
        return load_run(folder)

    monkeypatch.setattr(store, "load_run", read_slowly)
    out = make_campaign(*[FakeRun(seed=seed) for seed in range(1, 8)])
    kept = [log.rename(log.with_suffix(".kept")) for log in out.glob("runs/*/player.jsonl")]
    with Server(out.parent) as server:
        for _ in range(2):
            page = server.get("/campaign/campaign")
            assert page.status == 400 and "player.jsonl: it is missing" in page.problem
        for log in kept:
            log.rename(log.with_suffix(".jsonl"))
        assert "subway-1--xlink--s7" in server.get("/campaign/campaign").text


def test_a_long_computation_that_fails_is_told_once_and_then_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    begun, may_end = [], threading.Event()

    def fail() -> None:
        begun.append(may_end.wait(WAIT_S))
        raise UserError("it cannot be done")

    async def asked() -> None:
        work = Work()
        for _ in range(2):
            may_end.clear()
            with pytest.raises(UnfinishedError):
                await work.made("key", fail, "wait")
            may_end.set()
            with pytest.raises(UserError, match="it cannot be done"):
                while True:
                    with suppress(UnfinishedError):
                        await work.made("key", fail, "wait")
        work.end()

    asyncio.run(asked())
    gc.collect()
    assert begun == [True] * 2 and caplog.records == [], "nothing on the terminal"


def test_a_void_run_that_was_repeated_is_read_again(make_campaign: Make) -> None:
    """Replaces a run like `railyard run` does: same name, place and settings."""
    void = FakeRun(void=True, rct_s=[0.5, 7.77])
    out = make_campaign(void, *[FakeRun(seed=seed) for seed in range(2, 8)])
    place = f"campaign/{void.run_id}"
    with Server(out.parent) as server:
        before = server.get("/campaign/campaign").text
        assert "1 void" in before and "7.77" in before and "7.77" in server.get(f"/replay/{place}").text
        FakeRun(rct_s=[0.5, 3.33]).write(out / "again")
        (out / "runs" / void.run_id).rename(out / f"{void.run_id}-void")
        (out / "again" / void.run_id).rename(out / "runs" / void.run_id)
        after = server.get("/campaign/campaign").text
        assert "0 void" in after and "3.33" in after and "7.77" not in after
        replay = server.get(f"/replay/{place}").text
        assert "3.33" in replay and "7.77" not in replay


@pytest.mark.long
@pytest.mark.usefixtures("built")
def test_the_form_starts_one_bounded_campaign(make_campaign: Make) -> None:
    out = campaign(make_campaign)
    form = {
        "pair": "subway-1",
        "scheme": "xlink",
        "beside": ["sp", "vanilla-mp"],
        "seeds": "1",
        "scheme.t_th1_ms": "300",
    }
    form |= {"player.duration_s": "2", "player.bitrate_bps": "1mbps"}
    with Server(out.parent) as server:
        begun = server.post("/start", form)
        assert (begun.status, begun.headers["Location"]) == (303, "/job"), begun.problem
        again = server.post("/start", form)
        assert again.status == 409 and "still running" in again.problem
        until = time.monotonic() + WAIT_S
        while "data-next" not in (page := server.ask("/job")).text:
            assert time.monotonic() < until and server.job.last is not None and server.job.last.code in (None, 0), page
            time.sleep(0.2)
        assert server.job.last is not None and "railyard run --pair subway-1" in server.job.last.command
        [place] = re.findall(r'data-next="([^"]+)"', page.text)
        kept = server.get(place)
        assert kept.status == 200 and "xlink,t_th1_ms=300" in kept.text and "complete" in kept.text
        run = re.search(r'href="(/run/[^"?]*xlink[^"?]*)\?chunk=0#chunk"', kept.text)
        assert run is not None
        assert "Chunk 0 took" in server.get(f"{run[1]}?chunk=0").text
        assert "sandbox" in server.get(run[1].replace("/run/", "/replay/")).headers["Content-Security-Policy"]


@pytest.mark.usefixtures("built")
def test_a_campaign_that_takes_too_long_is_stopped(make_campaign: Make) -> None:
    out = campaign(make_campaign)
    with Server(out.parent, limit_s=0.05) as server:
        assert server.post("/start", {"pair": "subway-1", "scheme": "xlink"}).status == 303
        wait_until(lambda: not server.job.is_running, "the campaign is not stopped", WAIT_S)
        assert "which is the limit" in server.ask("/job").text


WRONG: tuple[tuple[dict[str, object], str], ...] = (
    ({"pair": "../etc"}, "there is no pair"),
    ({"scheme": "xlnk"}, "did you mean 'xlink'?"),
    ({"beside": ["mptcp"]}, "there is no scheme 'mptcp'"),
    ({"seeds": "99"}, "seeds takes a whole number"),
    ({"player.duration_s": "-1"}, "duration_s"),
    ({"player.bitrate_bps": "8\nname: x"}, "bitrate_bps"),
    ({"player.duration_s": "59", "player.bitrate_bps": "1gbps"}, "railyard run"),
    ({"player.no": "1"}, "there is no setting 'no'"),
    ({"scheme.t_th1_ms": "9000"}, "t_th1_ms"),
    ({"scheme.scheduler": "no"}, "unknown scheduler"),
    ({"scheme.label": "x"}, "there is no setting 'label'"),
    ({"run.arena": "mpshell"}, "there is no setting 'arena'"),
)


def test_a_form_that_is_wrong_comes_back_with_a_sentence(server: Server) -> None:
    for change, words in WRONG:
        answer = server.post("/start", {"pair": "subway-1", "scheme": "xlink"} | change)
        problem = answer.problem.replace("&#39;", "'")
        assert answer.status == 400 and words.lower() in problem.lower(), (change, problem)
    assert server.job.last is None


def test_each_declared_setting_has_a_field(server: Server) -> None:
    page = server.ask("/start").text
    rows = [*starting.player_rows(), *starting.run_rows(), *starting.scheme_rows()]
    assert len(rows) > 30
    for row in rows:
        assert f'name="{row.name}"' in page and f'for="{row.name}"' in page, row.name


def test_the_leaderboard_is_a_page_without_script_and_tells_nothing_of_the_machine(
    server: Server, tmp_path: Path
) -> None:
    folder = tmp_path / "board"
    done = railyard("serve", "--results", str(server.results), "--export", str(folder), "--figure", "rct_max")
    one_sentence(done, "there is no figure 'rct_max'")
    one_sentence(railyard("serve", "--results", str(tmp_path / "nope")), "nope: there is no such folder")
    good(railyard("serve", "--results", str(server.results), "--export", str(folder)))
    page = (folder / "index.html").read_text()
    assert "<script" not in page and "http" not in page.replace("http-equiv", "") and str(tmp_path) not in page
    rows = json.loads((folder / "leaderboard.json").read_text())
    of_median = [row for row in rows if row["figure"] == "rct_median"]
    assert [row["scheme"] for row in of_median] == ["xlink", "vanilla-mp"]
    assert of_median[0]["verdict"] == "first" and of_median[0]["low"] <= of_median[0]["value"] <= of_median[0]["high"]
    assert (folder / "leaderboard.csv").read_text().count("\n") == len(rows) + 1
    [xlink, vanilla] = [page.index(f'<th scope="row">{label}</th>') for label in ("xlink", "vanilla-mp")]
    assert xlink < vanilla
    assert "behind" in {row["verdict"] for row in rows if row["scheme"] == "vanilla-mp"}
    served = server.get("/leaderboard").text
    assert '<th scope="row">xlink</th>' in served


def test_a_scheme_that_played_at_fewer_places_is_not_ranked(make_campaign: Make) -> None:
    out = campaign(make_campaign, further=[FakeRun(label="new", rct_s=[0.01], start_offset_ms=60_000)])
    assert railyard("serve", "--results", str(out.parent), "--export", str(out.parent / "b")).returncode == 0
    page = (out.parent / "b" / "index.html").read_text()
    assert '<th scope="row">new</th>' not in page and "not played at all of these places: new" in page


@pytest.mark.parametrize("windows", [1, 6])
def test_a_figure_that_tables_show_without_an_interval_is_ranked(make_campaign: Make, windows: int) -> None:
    """Six windows of trace carry no interval of a p95, nor does one."""
    plays = [
        FakeRun(label=label, seed=seed, start_offset_ms=60_000 * (seed % windows), rct_s=[0.2 + 0.01 * seed] * 20)
        for label in ("sp", "xlink")
        for seed in range(1, 7)
    ]
    out = make_campaign(*plays)
    assert railyard("serve", "--results", str(out.parent), "--export", str(out.parent / "b")).returncode == 0
    rows = json.loads((out.parent / "b" / "leaderboard.json").read_text())
    of_p95 = [(row["scheme"], row["value"], row["low"]) for row in rows if row["figure"] == "rct_p95"]
    assert of_p95 == [("sp", 0.26, None), ("xlink", 0.26, None)]
    assert "0.26 s</td>" in (out.parent / "b" / "index.html").read_text()


def test_a_board_counts_plays_of_each_scheme_and_draws_to_the_largest_end(make_campaign: Make) -> None:
    known = store.Store(campaign(make_campaign).parent).find("campaign")
    board = leaderboard.board_of(known, leaderboard.figure_named("rct_median"))
    assert board is not None and board.about == "7 plays of each scheme over 1 pair of traces"
    levels = [row.level for row in board.rankings[0].rows]
    scale = leaderboard.WIDTH / max(level.high for level in levels)
    assert levels[0].high < levels[1].value < levels[1].high
    for row in board.rankings[0].rows:
        assert row.picture == pytest.approx([scale * end for end in (row.level.low, row.level.value, row.level.high)])


def test_schemes_with_equally_many_places_are_ranked_over_those_that_all_of_them_played(make_campaign: Make) -> None:
    seeds = {"sp": (1, 2), "xlink": (2, 3), "few": (2,)}
    out = make_campaign(*(FakeRun(label=label, seed=seed) for label, own in seeds.items() for seed in own))
    runs, left_out = leaderboard.at_common_places(load_campaign(out)[1])
    assert sorted((run.label, run.seed) for run in runs) == [("sp", 2), ("xlink", 2)] and left_out == ["few"]


def test_lower_bounds_share_a_place(make_campaign: Make) -> None:
    failed = [
        FakeRun(
            label=label,
            seed=seed,
            start_offset_ms=60_000 * seed,
            rct_s=[0.4],
            unfinished_s=[30.0] * 20,
            outcome="time_limit",
        )
        for label in ("stuck", "also-stuck")
        for seed in range(1, 8)
    ]
    out = campaign(make_campaign, further=failed)
    assert railyard("serve", "--results", str(out.parent), "--export", str(out.parent / "b")).returncode == 0
    rows = json.loads((out.parent / "b" / "leaderboard.json").read_text())
    of_median = [(row["place"], row["scheme"], row["at_least"]) for row in rows if row["figure"] == "rct_median"]
    assert of_median == [(1, "xlink", False), (2, "vanilla-mp", False), (3, "stuck", True), (3, "also-stuck", True)]
    page = (out.parent / "b" / "index.html").read_text()
    assert page.count('<td class="n">3</td><th scope="row">also-stuck</th><td class="n">≥ ') >= 1


@pytest.mark.parametrize(
    ("values", "places"),
    [
        ([(1, False), (2, False), (2, False), (3, False)], [1, 2, 2, 4]),
        ([(1, False), (5, True), (6, True), (7, False), (8, False)], [1, 2, 2, 2, 2]),
        ([(5, True), (5, True)], [1, 1]),
    ],
)
def test_equal_values_and_values_after_a_lower_bound_share_a_place(
    values: list[tuple[float, bool]], places: list[int]
) -> None:
    levels = [Interval(value, value, value, at_least=at_least) for value, at_least in values]
    assert leaderboard.places_of(levels) == places
