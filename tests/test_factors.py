"""Lists in place of values of a scheme's parameters: what is played, and the plot of the response."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import FakeRun, one_sentence
from in_process import railyard
from railyard.base.errors import UserError
from railyard.base.yamlfile import document_of
from railyard.experiment.factors import with_factors
from railyard.experiment.model import experiment_of
from railyard.report import write_report
from railyard.report.response import draw, responses
from railyard.results.records import Run, load_campaign

HEAD = "name: unit\narena: sim\npairs: [subway-1]\nschemes:\n"


def labels(schemes: str) -> list[str]:
    document = with_factors(document_of(Path("unit.yaml"), HEAD + schemes))
    return [entry.base_label() for entry in experiment_of(document).schemes]


def test_a_scheme_is_played_with_every_combination_of_its_factors() -> None:
    assert labels("- {scheme: xlink, cc: [cubic, bbr], t_th2_ms: [500, 900]}\n- sp\n") == [
        "xlink,t_th2_ms=500,cc=cubic",
        "xlink,t_th2_ms=900,cc=cubic",
        "xlink,t_th2_ms=500,cc=bbr",
        "xlink,t_th2_ms=900,cc=bbr",
        "sp",
    ]
    assert labels("- {scheme: xlink, label: mine, max_reinjections: [1, 2]}\n") == [
        "mine,max_reinjections=1",
        "mine,max_reinjections=2",
    ]


def test_thresholds_are_a_factor_only_as_a_list_of_pairs() -> None:
    assert labels("- {scheme: xlink, thresholds: [95, 80]}\n") == ["xlink,thresholds=95-80"]
    assert labels("- {scheme: xlink, thresholds: [[95, 80], [99, 50]]}\n") == [
        "xlink,thresholds=95-80",
        "xlink,thresholds=99-50",
    ]


def test_an_experiment_without_factors_is_as_it_was() -> None:
    document = document_of(Path("unit.yaml"), HEAD + "- sp\n- {scheme: xlink, cc: bbr}\n")
    assert with_factors(document) is document


@pytest.mark.parametrize(
    ("schemes", "sentence"),
    [
        ("- sp\n- scheme: xlink\n  cc: []\n", "unit.yaml:7: schemes[1].cc: a factor has each value once"),
        ("- scheme: xlink\n  cc: [bbr, bbr]\n", "unit.yaml:6: schemes[0].cc: a factor has each value once"),
        ("- {scheme: xlink, cc: [cubic, bbr]}\n- {scheme: xlink, t_th2_ms: no}\n", "unit.yaml:6:"),
        (f"- {{scheme: xlink, t_th2_ms: {list(range(201))}}}\n", "more than 200"),
    ],
)
def test_a_mistake_is_named_with_its_line(schemes: str, sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        labels(schemes)
    assert sentence in str(caught.value)


@pytest.fixture
def campaign(make_campaign: Callable[..., Path]) -> tuple[Path, dict[str, Any], list[Run]]:
    """xlink at three thresholds, each twice as slow as the one before, and sp."""
    fakes = [FakeRun(label="sp", scheme="sp", seed=seed) for seed in (1, 2)]
    fakes += [
        FakeRun(label=f"xlink,t_th2_ms={level}", seed=seed, rct_s=[factor * 0.5] * 4)
        for level, factor in ((1000, 2), (90, 1), (4000, 4))
        for seed in (1, 2)
    ]
    folder = make_campaign(*fakes)
    record, runs = load_campaign(folder)
    for run in runs:
        _, _, level = run.label.partition("t_th2_ms=")
        run.record["config"]["parameters"] = {"t_th2_ms": level} if level else {}
    return folder, record, runs


def test_the_response_to_a_factor_is_drawn_in_the_order_of_its_values(
    campaign: tuple[Path, dict[str, Any], list[Run]],
) -> None:
    [response] = responses(campaign[2])
    assert response.factor == "t_th2_ms"
    median, _, stalled = draw(response).data
    assert list(median.x) == [90, 1000, 4000] and list(median.y) == [0.5, 1, 2]
    assert list(stalled.y) == [5.0] * 3, "0.5 s in 10 s, in percent"


def test_a_report_has_the_response_only_where_a_parameter_varies(
    campaign: tuple[Path, dict[str, Any], list[Run]],
) -> None:
    folder, record, runs = campaign
    assert "Response to t_th2_ms: RCT median" in write_report(record, runs, folder).read_text()
    one = [run for run in runs if run.label in ("sp", "xlink,t_th2_ms=90")]
    assert "Response to" not in write_report(record, one, folder).read_text()


def test_rates_that_no_link_has_ask_for_their_unit(tmp_path: Path) -> None:
    """A file in kbps whose heading has no unit."""
    (tmp_path / "rates.csv").write_text("time,rate\n0,5000\n1,7000\n2,6000\n")
    asked = ("traces", "convert", str(tmp_path / "rates.csv"), "--out", str(tmp_path / "lte.down"))
    one_sentence(railyard(*asked), "which is no rate in mbps; give their unit")
    assert "6.00 Mbps" in railyard(*asked, "--unit", "kbps").stdout
