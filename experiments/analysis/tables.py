"""The tables of an analysis, each a function of the runs' traces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from experiments.analysis.metrics import broker_load, link_traffic, messages, paths, slowest, subscriptions
from experiments.analysis.metrics import delivery as deliveries_of
from experiments.analysis.metrics import destinations as lists
from experiments.analysis.metrics import latency as latencies
from experiments.analysis.metrics.matching_work import matching_work
from experiments.analysis.runs import Runs

STEPS_MOST = 60
"""The largest number of steps for each run in tables over time."""


@dataclass(frozen=True, slots=True)
class ResultTable:
    """A table of the analysis."""

    title: str
    about: str
    order: tuple[str, ...]
    """The columns by which rows are sorted, after the columns of the run."""
    make: Callable[[Runs, float], DataFrame]
    """Computes the table from the runs, and from the step of tables over time in seconds."""


RESULTS: dict[str, ResultTable] = {
    "latency": ResultTable(
        "Latency",
        "From publishing to delivery, over all deliveries.",
        (),
        lambda runs, _: latencies.latency(runs.deliveries),
    ),
    "latency_by_broker": ResultTable(
        "Latency by broker",
        "By the broker whose client got the publication.",
        ("broker",),
        lambda runs, _: latencies.latency(runs.deliveries, "broker"),
    ),
    "latency_over_time": ResultTable(
        "Latency over time",
        "By the time of publishing, in even steps.",
        ("at_s",),
        lambda runs, step_s: latencies.latency_over_time(runs.deliveries, step_s),
    ),
    "hops": ResultTable(
        "Hops",
        "Links between publisher's and subscriber's broker, over all deliveries.",
        (),
        lambda runs, _: paths.hops(runs.deliveries),
    ),
    "hop_distribution": ResultTable(
        "Distribution of hops",
        "Share of deliveries by their number of hops.",
        ("hops",),
        lambda runs, _: paths.hop_distribution(runs.deliveries),
    ),
    "routing_accuracy": ResultTable(
        "Routing accuracy",
        "Interested brokers over brokers reached, and one over the mean number of hops.",
        (),
        lambda runs, _: paths.routing_accuracy(runs.hops, runs.deliveries),
    ),
    "destinations": ResultTable(
        "Destination lists",
        "Brokers that a message of a publication is for: on all hops, and as the source sends it.",
        (),
        lambda runs, _: lists.destinations(runs.hops),
    ),
    "destinations_by_broker": ResultTable(
        "Destination lists by broker",
        "By the broker that sends the message.",
        ("sender",),
        lambda runs, _: lists.destinations(runs.hops, "sender"),
    ),
    "destination_distribution": ResultTable(
        "Distribution of destination lists",
        "Share of messages by the length of their list.",
        ("place", "destinations"),
        lambda runs, _: lists.destination_distribution(runs.hops),
    ),
    "delivery": ResultTable(
        "Delivery",
        "What arrived, against what was expected and what the overlay owed.",
        (),
        lambda runs, _: deliveries_of.delivery(runs.publications, runs.deliveries, runs.expectations),
    ),
    "misses": ResultTable(
        "Misses",
        "Owed, and not delivered.",
        ("publication", "client"),
        lambda runs, _: deliveries_of.misses(runs.deliveries, runs.expectations),
    ),
    "duplicates": ResultTable(
        "Duplicates",
        "Delivered to a client more than once.",
        ("publication", "client"),
        lambda runs, _: deliveries_of.duplicates(runs.deliveries),
    ),
    "drops": ResultTable(
        "Drops",
        "What brokers dropped, by reason.",
        ("broker", "reason"),
        lambda runs, _: deliveries_of.drops(runs.drops),
    ),
    "stored_subscriptions": ResultTable(
        "Stored subscriptions",
        "At a broker, and how often each is stored beside the one at its home.",
        (),
        lambda runs, _: subscriptions.stored_subscriptions(runs.brokers),
    ),
    "broker_state": ResultTable(
        "State of brokers",
        "Each broker as it was last seen.",
        ("broker",),
        lambda runs, _: subscriptions.latest_state(runs.brokers),
    ),
    "messages_by_kind": ResultTable(
        "Messages by kind",
        "Between brokers; acknowledgements and heartbeats are not recorded.",
        ("kind",),
        lambda runs, _: messages.messages_by_kind(runs.hops),
    ),
    "matching_work": ResultTable(
        "Matching",
        "Brokers that match a publication, and their work for it.",
        (),
        lambda runs, _: matching_work(runs.matches),
    ),
    "broker_load": ResultTable(
        "Load of brokers",
        "Share of time at work, and what passed through.",
        ("broker",),
        lambda runs, _: broker_load.broker_load(runs.brokers, runs.publications, runs.hops, runs.matches),
    ),
    "load_over_time": ResultTable(
        "Load over time",
        "Between each two records of a broker's state.",
        ("broker", "from_s"),
        lambda runs, _: broker_load.load_over_time(runs.brokers),
    ),
    "matching_over_time": ResultTable(
        "Matching over time",
        "Share of each step of time that a broker spent matching.",
        ("broker", "at_s"),
        lambda runs, step_s: broker_load.matching_over_time(runs.matches, step_s),
    ),
    "queueing": ResultTable(
        "Queueing",
        "How long publications wait at a broker before matching, and how long they stay before they leave.",
        ("broker",),
        lambda runs, _: broker_load.queueing(runs.publications, runs.hops, runs.matches),
    ),
    "link_utilisation": ResultTable(
        "Links",
        "What went over each link, and at what rate while it was up.",
        ("a", "b"),
        lambda runs, _: link_traffic.link_utilisation(runs.hops, runs.links),
    ),
    "slowest": ResultTable(
        "Slowest publications",
        "Ten of each run by their last delivery, with the way to it.",
        ("rank",),
        lambda runs, _: slowest.slowest(runs.deliveries, runs.hops),
    ),
}


def step_for(publications: DataFrame) -> float:
    """A round number of seconds that divides the longest run into at most `STEPS_MOST` steps."""
    lengths = publications.groupBy("run").agg((f.max("published_s") - f.min("published_s")).alias("length_s"))
    longest = lengths.agg(f.max("length_s")).first()
    return round_step((longest[0] if longest is not None else None) or 0.0)


def round_step(length_s: float) -> float:
    step_s = 0.001
    while length_s / step_s >= STEPS_MOST:
        for factor in (2, 5, 10):
            if length_s / (step_s * factor) < STEPS_MOST or factor == 10:
                step_s = round(step_s * factor, 3)
                break
    return step_s
