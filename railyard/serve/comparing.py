"""Comparisons of a campaign's schemes, or of two campaigns, by the functions of `railyard compare`."""

from collections.abc import Sequence
from dataclasses import dataclass

from railyard.base.errors import UserError
from railyard.report.figures import FOREST_CAPTION, forest
from railyard.report.sections import Drawing, embedded
from railyard.results import differences, shortage
from railyard.results.differences import Difference
from railyard.results.records import Run
from railyard.results.two import two_lists
from railyard.serve.pages import Filter, filter_of
from railyard.serve.store import Known
from railyard.serve.web import Page, title_of


@dataclass(frozen=True)
class Comparison:
    """The contents of a page of comparisons."""

    compared: list[Difference]
    sentences: list[str]
    notes: list[str]
    drawing: Drawing | None


def _drawn(compared: Sequence[Difference]) -> Drawing | None:
    try:
        drawn = forest(compared)
    except UserError:
        return None  # no difference has an interval; the table says so
    return Drawing(1, FOREST_CAPTION, embedded(drawn.to_json()), int(drawn.layout.height), FOREST_CAPTION)


def compare(runs: Sequence[Run], chosen: Sequence[tuple[str, str]], notes: Sequence[str], by_pair: bool) -> Comparison:
    """The same comparison as by `railyard compare`."""
    compared = differences.differences(runs, chosen, by_pair=by_pair)
    few = shortage.note(differences.shortages(runs, compared))
    remarks = [note for note in (few, *notes, differences.too_small(runs)) if note]
    return Comparison(compared, differences.sentences(compared), remarks, _drawn(compared))


class Compare(Page):
    async def get(self) -> None:
        store = self.site.store
        name, other = self.get_query_argument("campaign", ""), self.get_query_argument("other", "")
        against, by_pair = self.get_query_argument("against", ""), self.asked("by_pair", ["", "yes"], "") == "yes"
        names = [row.name for row in (await self.read(store.overviews))[0] if row.has_runs and row.whole]
        about = {"names": names, "name": name, "other": other, "against": against, "by_pair": by_pair}
        if not name:
            self.draw("compare.html.j2", **about, filter=None, made=None, references=[], title="", of_two=False)
            return
        first = await self.read(lambda: store.find(name))
        second = await self.read(lambda: store.find(other)) if other else None
        chosen = await self.read(lambda: filter_of(self, first))
        runs = await self.read(lambda: differences.sound(chosen.of(first.runs())))
        if second is None:
            comparisons = differences.asked(runs, [against] if against else [])
            made = await self._one(first, chosen, runs, comparisons, by_pair)
        elif second.folder == first.folder:
            raise UserError(f"{name} and {other} are the same campaign; choose two.")
        elif against:
            raise UserError("of two campaigns each scheme is compared with itself; leave 'against' empty.")
        else:
            made = await self._two(first, second, chosen, by_pair)
        about |= {
            "filter": chosen,
            "made": made,
            "references": differences.references(runs),
            "title": title_of(first.campaign),
        }
        self.draw("compare.html.j2", **about, of_two=second is not None)

    async def _one(
        self, known: Known, chosen: Filter, runs: list[Run], comparisons: list[tuple[str, str]], by_pair: bool
    ) -> Comparison:
        key = (known.folder, known.stamp(), "compare", *chosen.key, tuple(comparisons), by_pair)
        message = "The comparison is being computed."
        comparison: Comparison = await self.site.work.made(
            key, lambda: compare(runs, comparisons, (), by_pair), message
        )
        return comparison

    async def _two(self, first: Known, second: Known, chosen: Filter, by_pair: bool) -> Comparison:
        sides = await self.read(lambda: (chosen.of(first.runs()), chosen.of(second.runs())))
        names = (first.name, second.name)

        def make() -> Comparison:
            both = two_lists(sides, (first.folder, second.folder), names)
            return compare(both.runs, both.comparisons, both.notes, by_pair)

        key = (first.folder, first.stamp(), second.folder, second.stamp(), *chosen.key, by_pair)
        comparison: Comparison = await self.site.work.made(key, make, "The comparison is being computed.")
        return comparison
