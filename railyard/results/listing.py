"""The differences between folders of one name, and their disk space: for `railyard show` and `clean`."""

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from railyard.results.campaigns import StoredCampaign

LONGEST = 32
SHORT = 6
MOST_OF_PATHS = 4  # settings of paths that are named one by one


def disk_bytes(folders: Iterable[Path]) -> int:
    """The disk space of the folders, in bytes. A file with several hard links counts once."""
    seen: set[tuple[int, int]] = set()
    total = 0
    for folder in folders:
        for place, inner, names in os.walk(folder):
            for name in (*inner, *names):
                status = Path(place, name).lstat()
                if (status.st_dev, status.st_ino) not in seen:
                    seen.add((status.st_dev, status.st_ino))
                    total += status.st_blocks * 512
    return total


def size_words(count: int) -> str:
    """ "12 kB", "4.5 GB"."""
    value, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{value:.1f} {unit}" if value < 10 and unit != "B" else f"{value:.0f} {unit}"


def revision_words(git: dict[str, Any]) -> str:
    revision = git.get("revision")
    return "–" if not revision else f"{revision[:8]}{'+' if git.get('dirty') else ''}"


def _short_hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:SHORT]


def _value(value: Any) -> str:
    numbers = isinstance(value, list) and len(value) > 1 and all(isinstance(one, int) for one in value)
    if numbers and value == list(range(value[0], value[0] + len(value))):
        return f"{value[0]} to {value[-1]}"
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    return text if len(text) <= LONGEST else f"#{_short_hash(value)}"


def _flat(settings: Any, path: str = "") -> dict[str, Any]:
    if isinstance(settings, dict) and settings:
        parts = [_flat(value, f"{path}.{name}" if path else name) for name, value in settings.items()]
        return {name: value for part in parts for name, value in part.items()}
    return {path: settings}


def _settings(campaign: StoredCampaign) -> dict[str, Any]:
    """The settings on which the results depend. All programs count as one setting, all traces as another."""
    facts = campaign.facts.get("facts", {})
    settings = _flat(facts.get("settings") or campaign.experiment)
    settings = {name: value for name, value in settings.items() if name not in ("name", "description", "arena", "")}
    for name in ("programs", "traces"):
        if facts.get(name):
            settings[name] = f"#{_short_hash(facts[name])}"
    return settings


def _compared(campaigns: Sequence[StoredCampaign]) -> list[dict[str, Any]]:
    """The settings of each campaign. Those of the paths of a pair are among them where they differ between campaigns
    that have the pair, unless the experiments differ in that setting; if many do, as one setting."""
    own = [_settings(campaign) for campaign in campaigns]
    told = {_last(key) for key in _apart(own)}
    paths = [campaign.facts.get("paths", {}) for campaign in campaigns]  # folders of before do not have them
    pairs = dict.fromkeys(pair for of in paths for pair in of)
    of_pairs = [key for pair in pairs for key in _apart([_flat(of[pair], pair) for of in paths if pair in of])]
    apart = [key for key in of_pairs if _last(key) not in told]
    parts = [{key: value for key, value in _flat(of).items() if key in apart} for of in paths]
    if len(apart) > MOST_OF_PATHS:
        parts = [{"paths": f"#{_short_hash(part)}"} if part else {} for part in parts]
    return [settings | part for settings, part in zip(own, parts, strict=True)]


def _last(key: str) -> str:
    return key.rpartition(".")[2]


def _apart(settings: Sequence[dict[str, Any]]) -> list[str]:
    """The keys whose values differ."""
    keys = dict.fromkeys(key for values in settings for key in values)
    return [key for key in keys if len({json.dumps(values.get(key)) for values in settings}) > 1]


def settings_apart(first: StoredCampaign, second: StoredCampaign) -> list[str]:
    """The settings that differ between two campaigns, with both values."""
    ours, theirs = both = _compared((first, second))
    return [f"{key} {_value(ours.get(key))}, {_value(theirs.get(key))}" for key in _apart(both)]


def differences_of(campaigns: list[StoredCampaign]) -> dict[Path, str]:
    """The settings of each folder that differ from those of another folder of the same name."""
    texts: dict[Path, str] = {}
    for name in {campaign.experiment_name for campaign in campaigns}:
        group = [campaign for campaign in campaigns if campaign.experiment_name == name]
        settings = _compared(group)
        differing = _apart(settings)
        for campaign, own in zip(group, settings, strict=True):
            parts = [f"{key} {_value(own[key])}" for key in differing if own.get(key) is not None]
            if len({one.facts.get("identity") for one in group}) < len(group) and campaign.facts.get("fresh"):
                parts.append("done afresh")
            texts[campaign.folder] = ", ".join(parts)
    return texts
