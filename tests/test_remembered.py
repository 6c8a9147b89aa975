"""A repeated command with nothing new shows the kept output without reading a run. Any change makes it read again."""

import re
import shutil
from pathlib import Path

import pytest

from conftest import good
from in_process import railyard
from railyard.results import pending

EXPERIMENT = """
name: again
arena: sim
pairs: [subway-1]
schemes: [sp, vanilla-mp]
seeds: 2
player: {bitrate_bps: 1000000, duration_s: 2}
qlog: worst
"""


class ReadError(Exception):
    """The runs were read."""


def refuse(folder: Path) -> None:
    raise ReadError


@pytest.mark.usefixtures("built")
def test_a_campaign_without_anything_new_is_shown_again_without_reading_its_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAILYARD_TRACEBACK", "1")
    (tmp_path / "again.yaml").write_text(EXPERIMENT)
    out = tmp_path / "out"
    words = ("run", str(tmp_path / "again.yaml"), "--out", str(out))
    first = good(railyard(*words))
    page = (out / "report.html").read_text()
    with monkeypatch.context() as patch:
        patch.setattr(pending, "load_campaign", refuse)
        again = good(railyard(*words))
        summary = first.stdout[first.stdout.index("stalled") :]
        assert again.stdout.endswith(summary) and "6 of 6 runs are there already" in again.stdout
        run = next((out / "runs").glob("*vanilla-mp--s1"))
        kept = next((out / "runs").glob("*vanilla-mp*/qlog/*")).parent

        def read_again() -> None:
            with pytest.raises(ReadError):
                railyard(*words)

        (run / "player.jsonl").write_text((run / "player.jsonl").read_text() + "\n")
        read_again()
    for gone in (out / "report.html", kept):
        assert railyard(*words).returncode == 0
        shutil.rmtree(gone) if gone.is_dir() else gone.unlink()
        with monkeypatch.context() as patch:
            patch.setattr(pending, "load_campaign", refuse)
            read_again()
    good(railyard(*words))
    assert any(kept.iterdir()), "the qlogs that were removed are made again"
    assert len((out / "report.html").read_text()) == len(page)


def test_other_columns_are_another_view(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from railyard.cli import runs  # noqa: PLC0415  after the console's width is set

    (tmp_path / "again.yaml").write_text(EXPERIMENT.replace("worst", "none"))
    words = ("run", str(tmp_path / "again.yaml"), "--out", str(tmp_path / "out"))
    shown: dict[int, str] = {}
    for width in (200, 40, 200, 40):
        monkeypatch.setattr(runs.console, "_width", width)
        said = railyard(*words).stdout
        said = said[said.index("\n", said.index("qlogs are kept")) :]
        said = re.sub(r"(?s)^.*?(The runs took|there already).*?\n", "", said)
        assert shown.setdefault(width, said) == said
    assert shown[40] != shown[200]
