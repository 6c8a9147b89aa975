"""The pairs that viewers are drawn from: those of the trace library, and those that a scene's model generates."""

import hashlib
import json
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from railyard.base.errors import UserError
from railyard.studies.population.model import Population, Scene
from railyard.traces.draws import Draws
from railyard.traces.generate import GeneratedPair, pair_files
from railyard.traces.index import Pair
from railyard.traces.library import PROJECT_LIBRARY, list_pairs
from railyard.traces.parameters import MobilityModel, PathModel
from railyard.traces.settings import Value
from railyard.traces.trace import read_trace, sha256_file


@dataclass(frozen=True)
class Link:
    """One path of a pair, or of one viewer."""

    name: str
    technology: str
    up: str
    down: str
    up_sha256: str
    down_sha256: str
    delay_ms: float
    queue: str
    settings: tuple[tuple[str, Any], ...] = ()
    mbps: float = 0.0
    """Mean rate on the way down that others leave."""


@dataclass(frozen=True)
class ScenePair:
    name: str
    paths: tuple[Link, ...]
    period_ms: int


def _scaled(path: PathModel, factor: float) -> PathModel:
    """The path with its rate outside of dips scaled. Dips are not scaled."""
    body = path.body.model_copy(update={"median_mbps": round(path.body.median_mbps * factor, 3)})
    body = body.model_copy(update={"peak_mbps": max(body.peak_mbps, round(body.median_mbps * 1.5, 3))})
    return path.model_copy(update={"body": body})


def generated_pair(scene: Scene, seed: int, index: int) -> GeneratedPair:
    """All facts that decide pair `index` of a scene, with drawn rates of its paths."""
    model = scene.model
    if model is None:
        raise ValueError(f"the scene {scene.name} has no model")
    paths = []
    for path in model.paths:
        law = scene.paths[path.name].rate_factor if path.name in scene.paths else None
        draws = Draws(seed, f"scene/{scene.name}/{index}/{path.name}")
        paths.append(path if law is None else _scaled(path, law.drawn(draws)))
    drawn = MobilityModel(scenario=model.scenario, tunnels=model.tunnels, paths=tuple(paths))
    pair_seed = int(Draws(seed, f"scene/{scene.name}/{index}").uniform() * 2**48)
    name = f"{scene.name}-{index + 1}"
    return GeneratedPair(name=name, seed=pair_seed, duration_s=scene.duration_s, model=drawn)


class Library:
    """Pairs by scene. Generated pairs are made on first use and kept in a folder of the campaign."""

    def __init__(self, population: Population, folder: Path, *, recorded: bool) -> None:
        self._seed = population.seed
        self._folder = folder
        self._pairs: dict[tuple[str, int], ScenePair] = {}
        known = list_pairs()
        if not recorded:
            known = [pair for pair in known if pair.library.parent == PROJECT_LIBRARY]
        self._pairs_by_scene: dict[str, list[Pair]] = {}
        for scene in population.scenes:
            if scene.scenarios:
                pairs = [pair for pair in known if pair.scenario in scene.scenarios]
                if not pairs:
                    raise UserError(f"the scene {scene.name} has no pair: no scenario {' or '.join(scene.scenarios)}.")
                self._pairs_by_scene[scene.name] = sorted(pairs, key=lambda pair: pair.name)

    def generated(self) -> dict[str, str]:
        """The files of the pairs that were generated so far, by name, with the SHA-256 of each."""
        return {file.name: sha256_file(file) for way in ("up", "down") for file in self._folder.glob(f"*/[!.]*.{way}")}

    def traces(self) -> dict[str, str]:
        """The files of the pairs that are not generated, by name, with the SHA-256 of each."""
        paths = [path for pairs in self._pairs_by_scene.values() for pair in pairs for path in pair.paths]
        return {file.name: sha256_file(file) for path in paths for file in (path.uplink, path.downlink)}

    @property
    def sha256(self) -> str:
        """SHA-256 over names and contents of the files from which viewers are drawn."""
        return hashlib.sha256(json.dumps(self.traces(), sort_keys=True).encode()).hexdigest()

    def count(self, scene: Scene) -> int:
        return scene.pairs if scene.model is not None else len(self._pairs_by_scene[scene.name])

    def pair(self, scene: Scene, index: int) -> ScenePair:
        key = (scene.name, index)
        if key not in self._pairs:
            self._pairs[key] = self._made(scene, index) if scene.model is not None else self._read(scene, index)
        return self._pairs[key]

    def _read(self, scene: Scene, index: int) -> ScenePair:
        pair = self._pairs_by_scene[scene.name][index]
        paths = []
        for path in pair.paths:
            if path.delay_traces:
                raise UserError(f"the pair {pair.name} has delay traces, which a population cannot vary; leave it out.")
            files = (path.uplink, path.downlink)
            paths.append(_path(path.name, path.technology, files, path.base_rtt_ms, path.queue, path.settings))
        return _pair(pair.name, paths)

    def _made(self, scene: Scene, index: int) -> ScenePair:
        wanted = generated_pair(scene, self._seed, index)
        folder = self._folder / wanted.name
        parameters = folder / f"{wanted.name}.yaml"
        if not parameters.is_file() or wanted.as_yaml() not in parameters.read_text(encoding="utf-8"):
            folder.mkdir(parents=True, exist_ok=True)
            for name, data in pair_files(wanted).items():  # the parameters come last and complete the pair
                # Workers may make the same pair at the same time: each writes the same bytes to its own file.
                partial = folder / f".{name}.{secrets.token_hex(8)}.partial"
                partial.write_bytes(data)
                partial.rename(folder / name)
        paths = []
        for path in wanted.model.paths:
            up, down = (folder / f"{wanted.name}.{path.name}.{way}" for way in ("up", "down"))
            paths.append(_path(path.name, path.technology, (up, down), path.base_rtt_ms, path.queue, path.link or {}))
        return _pair(wanted.name, paths)


def _path(
    name: str, technology: str, files: tuple[Path, Path], base_rtt_ms: float, queue: str, settings: dict[str, Value]
) -> tuple[Link, int]:
    up, down = read_trace(files[0]), read_trace(files[1])
    path = Link(
        *(name, technology, str(files[0]), str(files[1]), up.sha256, down.sha256, base_rtt_ms / 2, queue),
        settings=tuple(sorted(settings.items())),
        mbps=down.mean_mbps,
    )
    return path, min(up.period_ms, down.period_ms)


def _pair(name: str, paths: list[tuple[Link, int]]) -> ScenePair:
    return ScenePair(name, tuple(path for path, _ in paths), min(period for _, period in paths))
