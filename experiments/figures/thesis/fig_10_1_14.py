"""[THESIS Fig. 10.1.14]: mean destination list of D-DBR and MERC, degree 9, half of the brokers interested."""

from __future__ import annotations

from experiments.figures.figure import Claim, Figure, Panel, PaperPoint, Point, Rows, Scale, Shape, is_rising
from experiments.figures.setups.destination_lists import MEAN, MODEL, SETTING, count_lists_point, mean_row

DEGREE, SHARE = 9, 0.5
BROKERS: dict[Scale, tuple[int, ...]] = {"quick": (60, 120, 240), "paper": tuple(range(100, 1001, 100))}
CLUSTER_SIZE: dict[Scale, int] = {"quick": 30, "paper": 100}
PUBLICATIONS: dict[Scale, int] = {"quick": 500, "paper": 10_000}
DDBR, DDBR_ALL, MERC = "D-DBR", "D-DBR, all interested", "MERC"


def points(scale: Scale) -> list[Point]:
    all_points = []
    for series, protocol, share in ((DDBR, "d-dbr", SHARE), (DDBR_ALL, "d-dbr", 1.0), (MERC, "merc", SHARE)):
        all_points += [
            count_lists_point(
                protocol,
                brokers=brokers,
                degree=DEGREE,
                interested=share,
                publications=PUBLICATIONS[scale],
                cluster_size=CLUSTER_SIZE[scale],
                series=series,
            )
            for brokers in BROKERS[scale]
        ]
    return all_points


def _merc_is_shorter(rows: Rows) -> bool | None:
    ddbr, merc = rows.values(MEAN, DDBR), rows.values(MEAN, MERC)
    return merc[-1] < ddbr[-1] if ddbr and merc else None


def _merc_levels_off(rows: Rows) -> bool | None:
    """Whether MERC's list grows by less than D-DBR's from the second point on, where there are several clusters."""
    ddbr, merc = rows.values(MEAN, DDBR), rows.values(MEAN, MERC)
    return merc[-1] - merc[1] < ddbr[-1] - ddbr[1] if len(ddbr) > 2 and len(merc) > 2 else None


FIGURE = Figure(
    name="fig-10.1.14",
    title="Mean destination list of D-DBR and MERC, degree 9",
    reference="[THESIS 10.1.2, Fig. 10.1.14]",
    claim="A higher degree makes lists shorter (3.2 instead of 3.8 at 700 brokers); MERC: 1.92 at 1,000 brokers.",
    setting=(
        "Degree 9, 100 to 1,000 brokers, half of them interested, 10,000 publications each; MERC with clusters of 100. "
        f"{SETTING} {MODEL} A line for all interested is added, because the paper's 3.2 is stated for that case."
    ),
    points=points,
    rows=mean_row,
    panels=(
        Panel(
            MEAN,
            "Mean destination list",
            "brokers",
            "destinations in a message",
            paper=(PaperPoint(DDBR_ALL, 700, 3.2), PaperPoint(MERC, 1000, 1.92)),
        ),
    ),
    claims=(
        Claim(
            "D-DBR at 700 brokers, all interested",
            3.2,
            lambda rows: rows.y(MEAN, DDBR_ALL, 700),
            why="The mean distance, about ln 700 / ln 9 = 3.0 and a little more.",
        ),
        Claim(
            "MERC at 1,000 brokers, half interested",
            1.92,
            lambda rows: rows.y(MEAN, MERC, 1000),
            why=(
                "The paper's number is that of D-DBR on one cluster: 1.91 in ours, the first point of both lines. In "
                "our transit-stub overlays all legs but the source's start at a transit node, which has one link "
                "into its stub domain, as GT-ITM makes them: the first lists there hold all of the cluster's "
                "destinations. How the paper's clusters are joined is not stated; an edge broker with as many links "
                "into its cluster as any other broker would give the paper's number."
            ),
        ),
    ),
    shapes=(
        Shape("D-DBR's list grows with brokers", lambda rows: is_rising(rows.values(MEAN, DDBR))),
        Shape("MERC's list is shorter than D-DBR's on the largest overlay", _merc_is_shorter),
        Shape("MERC's list grows by less than D-DBR's once there are several clusters", _merc_levels_off),
    ),
    minutes={"quick": 0.1, "paper": 1},
)
