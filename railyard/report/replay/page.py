"""Writes the page of a run, `replay.html`, into the run's folder."""

import json
from pathlib import Path
from typing import Any

from railyard.base.errors import UserError
from railyard.base.files import write_whole, writing
from railyard.base.words import counted
from railyard.experiment.model import SCHEME_DESCRIPTION
from railyard.report import page
from railyard.report.replay.figure import draw, key
from railyard.report.replay.series import Replay, read_replay
from railyard.report.sections import Drawing, embedded
from railyard.results.explain.explanation import explain_all, sentences

FILE = "replay.html"


def _alt(replay: Replay) -> str:
    run = replay.run
    stalled = sum(end - begin for begin, end in replay.stalls)
    return (
        f"{run.label} on {run.pair} over {replay.end_s:.1f} s: {counted(len(replay.paths), 'path')}, "
        f"{counted(len(replay.chunks), 'chunk')}, {counted(len(replay.stalls), 'stall')}, {stalled:.2f} s together. "
        "The tables below have the chunks and the events."
    )


def _reasons(folder: Path, replay: Replay) -> dict[int, list[str]]:
    """The sentences of `railyard explain` by chunk. Empty without qlogs of both ends."""
    try:
        explained = explain_all(folder, replay.run)
    except UserError:
        return {}
    return {number: list(sentences(explanation)) for number, explanation in explained.items()}


def render(folder: Path, replay: Replay) -> str:
    """The page of the run in that folder as HTML text."""
    drawn = draw(replay)
    alt = _alt(replay)
    figure = Drawing(1, alt, embedded(drawn.to_json()), int(drawn.layout.height), alt)
    template = page.environment().get_template("replay.html.j2")
    timeline: dict[str, Any] = {
        "end_s": round(replay.bins.count * replay.bins.width_s, 3),
        "step_s": replay.bins.width_s,
    }
    timeline |= {"stalls": replay.stalls, "moments": [[m.t_s, m.what] for m in replay.moments]}
    return template.render(
        replay=replay,
        run=replay.run,
        figure=figure,
        key=key(replay),
        description=SCHEME_DESCRIPTION[replay.run.config["scheme"]],
        reasons=_reasons(folder, replay),
        timeline=embedded(json.dumps(timeline)),
        replay_script=page.source("replay.js"),
        assets=page.assets(),
    )


def write_replay(folder: Path) -> Path:
    """Writes the page of one run, completely or not at all. Raises UserError if the run is incomplete."""
    text = render(folder, read_replay(folder))
    with writing(folder / FILE):
        return write_whole(folder / FILE, text)


def write_replays(campaign: Path) -> list[Path]:
    """The pages of all completed runs of a campaign."""
    folders = [record.parent for record in sorted(campaign.glob("runs/[!.]*/run.json"))]
    for folder in folders:
        if not folder.resolve().is_relative_to(campaign.resolve()):
            raise UserError(f"{folder}: this is a link out of the campaign, where no page is written; remove it.")
    return [write_replay(folder) for folder in folders]
