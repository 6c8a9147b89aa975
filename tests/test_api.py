"""`import railyard as rr`: what a notebook uses."""

import sys
from pathlib import Path

import numpy as np
import pytest

import railyard as rr
from conftest import good, run_program
from railyard.base.errors import UserError

SETTINGS = {"player": {"bitrate": "2mbps", "duration": "2s", "chunk_bytes": "128KiB"}, "start_offset_ms": "spread"}


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> rr.Campaign:
    out = tmp_path_factory.mktemp("api") / "out"
    return rr.play(pairs=["subway-1"], schemes=["sp", "vanilla-mp"], settings=SETTINGS, seeds=5, out=out)


def test_a_campaign_has_its_runs_and_tables(campaign: rr.Campaign) -> None:
    assert campaign.schemes == ["sp", "sp:lte", "vanilla-mp"] and len(campaign.runs) == 15
    requests = campaign.chunks.to_pylist()
    assert len(requests) == sum(len(run.chunks) for run in campaign.runs) > 15
    assert {row["label"] for row in requests} == set(campaign.schemes) and requests[0]["rct_s"] > 0


def test_what_was_played_is_loaded(campaign: rr.Campaign) -> None:
    again = rr.load(campaign.folder)
    assert again.chunks.equals(campaign.chunks)
    assert [run.run_id for run in again.runs] == [run.run_id for run in campaign.runs]


def test_a_comparison_has_the_command_lines_rows_and_sentences(campaign: rr.Campaign) -> None:
    found = rr.compare(campaign, against="sp")
    rows = found.table.to_pylist()
    assert {row["scheme"] for row in rows} == {"sp:lte", "vanilla-mp"} and {row["against"] for row in rows} == {"sp"}
    assert {row["plays"] for row in rows} == {5}
    assert all(sentence.partition(" against ")[0] in campaign.schemes for sentence in found.sentences)


def test_two_campaigns_are_compared(campaign: rr.Campaign, tmp_path: Path) -> None:
    slow = SETTINGS | {"links.all.delay_ms": "300ms"}
    other = rr.play(pairs=["subway-1"], schemes=["sp"], settings=slow, seeds=5, out=tmp_path / "slow")
    median = next(one for one in rr.compare(other, campaign).differences if one.figure.name == "rct_median")
    assert median.change is not None and median.change.interval.value > 0.5


def test_a_notebook_shows_tables_and_figures(campaign: rr.Campaign) -> None:
    shown = campaign._repr_html_()
    assert "<table>" in shown and shown.count("<tr>") == 4
    assert "verdict" in rr.compare(campaign)._repr_html_()
    assert len(campaign.rct_cdf().data) >= 3
    assert campaign.replay(campaign.runs[0].run_id).data


def test_what_python_prints_of_a_campaign_fits_a_line(campaign: rr.Campaign) -> None:
    assert repr(campaign) == f"Campaign(folder={campaign.folder!r})"
    assert len(repr(campaign.runs[0])) < 1000


def test_a_slow_chunk_is_explained_and_its_parts_are_its_time(campaign: rr.Campaign) -> None:
    run = campaign.run("subway-1--vanilla-mp--s1")
    slowest = max(run.chunks, key=lambda chunk: chunk.rct_s)
    found = campaign.explain(run.run_id)
    assert campaign.explain(run) == found
    assert sum(found.parts["seconds"].to_pylist()) == pytest.approx(slowest.rct_s, abs=1e-6)
    assert found.sentences[0].startswith(f"Chunk {slowest.index} took ") and "bounded by" in found._repr_html_()


def test_names_are_escaped(campaign: rr.Campaign) -> None:
    run = campaign.runs[0]
    run.record["config"]["pair"] = "<script>"
    run.__dict__.pop("pair", None)
    try:
        assert "<script>" not in campaign._repr_html_()
    finally:
        run.record["config"]["pair"] = "subway-1"
        run.__dict__.pop("pair", None)


def test_what_is_not_there_is_one_sentence(campaign: rr.Campaign, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no run or campaign 'none'"):
        rr.load("none", results=tmp_path)
    with pytest.raises(UserError, match="needs an experiment, or pairs"):
        rr.play()
    with pytest.raises(UserError, match="no run of scheme 'xlink'"):
        rr.compare(campaign, against="xlink")
    with pytest.raises(UserError, match="there is no pair 'hsr-1'"):
        campaign.rct_cdf("hsr-1")
    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        rr.lode  # noqa: B018


def test_one_name_paths_as_text_and_numbers_of_numpy_are_taken(tmp_path: Path) -> None:
    short = {"player.duration_s": np.float64(1), "player.bitrate_bps": np.int64(1_000_000)}
    played = rr.play(pairs="subway-1", schemes="vanilla-mp", settings=short, seeds=np.int64(1), out=str(tmp_path / "a"))
    assert [run.run_id for run in played.runs] == ["subway-1--vanilla-mp--s1"]
    assert rr.load("a", results=str(tmp_path)).folder == tmp_path / "a"
    with pytest.raises(UserError, match=r"settings: player: this takes text, .* not set\."):
        rr.play(pairs="subway-1", settings={"player": {"duration_s"}})


def test_a_notebook_completes_the_interface() -> None:
    assert {"play", "load", "compare"} <= set(dir(rr))


def test_the_import_alone_loads_no_library() -> None:
    program = "import sys, railyard as rr; print(sorted({'numpy', 'pyarrow', 'plotly', 'pydantic'} & set(sys.modules)))"
    done = good(run_program([sys.executable, "-c", program]))
    assert done.stdout == "[]\n"
