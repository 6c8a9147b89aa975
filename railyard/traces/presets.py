"""The project's mobility models, from models.yaml. docs/reference/traces.md has their sources."""

from functools import cache
from pathlib import Path
from typing import Any

from railyard.base.yamlfile import load_yaml
from railyard.traces.links import link_defaults
from railyard.traces.parameters import MobilityModel


def _path(scenario: str, written: dict[str, Any]) -> dict[str, Any]:
    technology = written.get("technology", written["name"])
    link = link_defaults(scenario, technology)
    usual = {"base_rtt_ms": link.base_rtt_ms, "base_rtt_basis": link.basis, "queue": link.queue}
    return {"technology": technology, **usual, "link": link.settings or None, **written}


@cache
def mobility_models() -> dict[str, MobilityModel]:
    """The models by name."""
    data = load_yaml(Path(__file__).with_name("models.yaml")).data
    return {
        name: MobilityModel.model_validate(
            {**model, "paths": [_path(model["scenario"], path) for path in model["paths"]]}
        )
        for name, model in data.items()
    }
