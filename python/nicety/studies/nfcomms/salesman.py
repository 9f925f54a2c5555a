"""The travelling salesman by 2-opt with random restarts: quality of tours, and their times."""

from __future__ import annotations

import json
import time
from functools import lru_cache
from typing import TYPE_CHECKING

from nicety import _native
from nicety._generated.types import TourReport
from nicety.apps.salesman import climb_lengths, solve_tsp
from nicety.show.columns import fixed
from nicety.studies.claims import Ours
from nicety.studies.nfcomms.cardinality import CARD
from nicety.studies.study import Measured, Options, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PROBLEM = "kroA100"
_OPTIMUM = 21282
"""The length of the shortest tour, from TSPLIB."""
_CLIMBERS = 59
_RESTARTS = 10_000
"""Number of climbs in the paper."""
_TIMED = 500
"""Number of climbs that are timed on this machine."""


@lru_cache(maxsize=2)
def _on_card(options: Options) -> TourReport:
    restarts = _CLIMBERS if options.quick else 2 * _CLIMBERS
    return solve_tsp(_PROBLEM, nic=CARD, restarts=restarts, climbers=_CLIMBERS, seed=options.seed)


@lru_cache(maxsize=2)
def _lengths(options: Options) -> list[int]:
    return climb_lengths(_PROBLEM, restarts=1000 if options.quick else _RESTARTS, seed=options.seed)


@lru_cache(maxsize=2)
def _core_s(options: Options) -> float:
    """Return the time of one climb on one core of this machine in seconds, from the CPU time of many climbs."""
    climb_lengths(_PROBLEM, restarts=1, seed=options.seed)
    begun = time.process_time()
    climb_lengths(_PROBLEM, restarts=_TIMED, seed=options.seed)
    return (time.process_time() - begun) / _TIMED


def _hertz() -> float:
    """Return the clock rate of the card's microengines in hertz."""
    spec = json.loads(_native.spec_show(CARD, []))
    (clock,) = (value["value"] for value in spec["parameters"] if value["key"] == "hpu.clock")
    megahertz, unit = clock.split()
    if unit != "MHz":
        raise RuntimeError(f"a clock in {unit}")
    return float(megahertz) * 1e6


def salesman(options: Options) -> Measured:
    """Measure tours of the problem kroA100: their lengths, and the time to find them."""
    card, lengths = _on_card(options), _lengths(options)
    made = card["restarts"]
    if min(lengths[:made]) != card["length"]:
        raise RuntimeError("the card's climbs are not those of this machine")
    counts = sorted({1, 10, _CLIMBERS, made, 1000, len(lengths)})
    best = {count: min(lengths[:count]) for count in counts}
    of_climb_s = (card["climber_cycles_computing"] + card["climber_cycles_asleep"]) / made / _hertz()

    def seconds(count: int) -> str:
        """Return the card's time for `count` climbs: measured, or extrapolated as if all climbers ended together."""
        if count == made:
            return fixed(card["card_time_ns"] / 1e9, 3)
        return fixed(count * of_climb_s / min(count, _CLIMBERS), 3)

    def over(length: int) -> str:
        return fixed(100 * (length / _OPTIMUM - 1), 2)

    def figure() -> Figure:
        from nicety.show.curves import figure_of
        from nicety.show.lines import Curve

        points = sorted({*counts, *(1 << power for power in range(14) if 1 << power <= len(lengths))})
        curves = [
            Curve("the best so far", {count: float(min(lengths[:count])) for count in points}),
            Curve("the shortest there is", dict.fromkeys(points, float(_OPTIMUM)), 1, 1, marked=False),
        ]
        return figure_of(curves, title="kroA100: the best of many climbs", x="Climbs", y="Length of the tour")

    last = len(lengths)
    card_s, core_s = last * of_climb_s / _CLIMBERS, _core_s(options) * last
    return Measured(
        {
            # Not judged: the number depends on this machine and not only on the card.
            "tsp-slowest": Ours(
                None,
                f"{last} climbs: {fixed(card_s, 1)} s on the card, extrapolated; {fixed(core_s, 1)} s on one core of "
                "this machine; no graphics processor, which few machines have: nicety tsp --compare gpu times one",
            ),
        },
        tables=[
            Table(
                section="Travelling salesman",
                title=f"kroA100 on {_CLIMBERS} microengines, by the number of climbs",
                rows=[
                    ["Climbs", "Best tour", "Over the shortest (%)", "Card time (s)", ""],
                    *(
                        [
                            str(count),
                            str(best[count]),
                            over(best[count]),
                            seconds(count),
                            "measured" if count == made else "extrapolated",
                        ]
                        for count in counts
                    ),
                ],
                note=f"Measured are {made} climbs on the card. The others are made on this machine, where each finds "
                "the tour that it finds on the card, and their card time is extrapolated: the mean time of a climb, "
                "with all climbers at work to the end. The times of this machine differ from run to run; its graphics "
                "processor is not measured here (nicety tsp --compare gpu does)",
            )
        ],
        figures={"tours": ("The best tour of kroA100 by number of climbs", figure)},
        data={"tours": {"rows": [{"climb": number, "length": length} for number, length in enumerate(lengths)]}},
    )
