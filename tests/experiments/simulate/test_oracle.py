"""Proves which pairs of publication and client the oracle expects, and that each has exactly one fate."""

from __future__ import annotations

import pytest

from broker.trace.schema import DeliveryRow, DropRow, Row
from experiments.simulate.drop_reasons import TERMINAL_DROPS
from experiments.simulate.oracle import AcceptedPublication, Fate, Oracle
from experiments.simulate.summary import RunSummary, SummaryBuilder
from matching.languages.sql import parse
from routing.messages import PublicationId

ID = PublicationId("b1", 1, 0)


def subscribe(oracle: Oracle, client: str, name: str = "n0", expression: str = "a = 1", broker: str = "b2") -> None:
    oracle.add_request(client, name, broker, parse(expression))
    oracle.confirm(client, name)


def publish(oracle: Oracle, value: int = 1) -> AcceptedPublication:
    oracle.add_publication(ID, {"a": value}, at=5)
    return list(oracle)[-1]


def fates(publication: AcceptedPublication, *delivered: str, is_dropped: bool = False) -> dict[str, Fate]:
    found = publication.fates(delivered, is_dropped=is_dropped)
    is_missing = Fate.MISSED in found.values()
    assert publication.is_accounted_for(delivered, is_dropped=is_dropped) is not is_missing
    return found


def nobody(_: PublicationId, __: str) -> bool:
    return False


def test_a_subscription_that_was_confirmed_a_moment_before_is_owed_the_publication() -> None:
    oracle = Oracle()
    subscribe(oracle, "s")
    publication = publish(oracle)
    assert fates(publication, "s") == {"s": Fate.DELIVERED}
    assert fates(publication) == {"s": Fate.MISSED}


def test_a_publication_accepted_before_the_confirmation_is_not_expected() -> None:
    oracle = Oracle()
    oracle.add_request("s", "n0", "b2", parse("a = 1"))
    publication = publish(oracle)
    oracle.confirm("s", "n0")
    assert fates(publication) == {}


def test_a_subscription_that_does_not_match_or_was_withdrawn_before_is_not_expected() -> None:
    oracle = Oracle()
    subscribe(oracle, "other", expression="a = 2")
    subscribe(oracle, "gone")
    oracle.remove_client("gone")
    assert fates(publish(oracle)) == {}


def test_a_client_that_leaves_before_its_subscription_is_confirmed_is_owed_nothing() -> None:
    oracle = Oracle()
    oracle.add_request("s", "n0", "b2", parse("a = 1"))
    oracle.remove_client("s")
    oracle.confirm("s", "n0")
    assert fates(publish(oracle)) == {}


def test_an_answer_to_anything_else_is_ignored() -> None:
    oracle = Oracle()
    oracle.confirm("publisher", "all")
    assert fates(publish(oracle)) == {}


def test_a_client_that_leaves_before_the_publication_arrives_has_withdrawn() -> None:
    oracle = Oracle()
    subscribe(oracle, "s")
    publication = publish(oracle)
    oracle.remove_client("s")
    assert fates(publication) == {"s": Fate.WITHDRAWN}
    assert fates(publication, "s") == {"s": Fate.DELIVERED}


def test_a_pair_is_lost_when_the_subscribers_broker_is_killed_and_later_publications_are_not_expected() -> None:
    oracle = Oracle()
    subscribe(oracle, "near", broker="b2")
    subscribe(oracle, "far", broker="b3")
    publication = publish(oracle)
    oracle.kill_broker("b2", nobody)
    assert fates(publication) == {"far": Fate.MISSED, "near": Fate.LOST}
    assert fates(publication, "near", "far") == {"far": Fate.DELIVERED, "near": Fate.DELIVERED}
    assert fates(publish(oracle), "far") == {"far": Fate.DELIVERED}


def test_a_request_ends_with_the_broker_that_did_not_answer_it() -> None:
    oracle = Oracle()
    oracle.add_request("s", "n0", "b2", parse("a = 1"))
    oracle.kill_broker("b2", nobody)
    oracle.confirm("s", "n0")
    assert fates(publish(oracle)) == {}


def test_the_first_end_of_a_subscription_counts() -> None:
    oracle = Oracle()
    subscribe(oracle, "left first")
    subscribe(oracle, "killed first")
    publication = publish(oracle)
    oracle.remove_client("left first")
    oracle.kill_broker("b2", nobody)
    oracle.remove_client("killed first")
    assert fates(publication) == {"killed first": Fate.LOST, "left first": Fate.WITHDRAWN}


def test_a_publication_is_lost_with_the_only_broker_that_answered_for_it() -> None:
    oracle = Oracle()
    subscribe(oracle, "got it")
    subscribe(oracle, "s")
    publication = publish(oracle)
    oracle.kill_broker("b1", nobody)
    assert fates(publication, "got it") == {"got it": Fate.DELIVERED, "s": Fate.MISSED}
    oracle.kill_broker("b4", lambda each, _: each == ID)
    assert fates(publication, "got it") == {"got it": Fate.DELIVERED, "s": Fate.LOST}
    oracle.kill_broker("b1", nobody)
    assert fates(publication, "got it") == {"got it": Fate.DELIVERED, "s": Fate.LOST}


def test_a_publication_is_lost_for_those_brokers_that_it_was_to_reach_from_the_killed_one() -> None:
    oracle = Oracle()
    subscribe(oracle, "near", broker="b2")
    subscribe(oracle, "far", broker="b5")
    publication = publish(oracle)
    oracle.kill_broker("b1", lambda _, home: home == "b2")
    assert fates(publication) == {"far": Fate.MISSED, "near": Fate.LOST}
    assert fates(publication, "far") == {"far": Fate.DELIVERED, "near": Fate.LOST}


def test_a_publication_that_was_deferred_is_lost_too_and_is_evaluated_at_the_end() -> None:
    oracle = Oracle()
    subscribe(oracle, "s")
    publication = publish(oracle)
    oracle.defer_oldest()
    assert oracle.oldest is None
    assert len(oracle) == 1
    oracle.kill_broker("b1", lambda *_: True)
    assert list(oracle.remove_all()) == [publication]
    assert fates(publication) == {"s": Fate.LOST}
    assert len(oracle) == 0


def test_a_named_drop_accounts_for_clients_that_did_not_receive_it_and_stayed() -> None:
    oracle = Oracle()
    subscribe(oracle, "got it")
    subscribe(oracle, "left")
    subscribe(oracle, "s")
    publication = publish(oracle)
    oracle.remove_client("left")
    assert fates(publication, "got it", is_dropped=True) == {
        "got it": Fate.DELIVERED,
        "left": Fate.WITHDRAWN,
        "s": Fate.DROPPED,
    }


def test_a_client_counts_once_however_many_of_its_subscriptions_match() -> None:
    oracle = Oracle()
    for number in range(3):
        subscribe(oracle, "s", f"n{number}", f"a < {number + 2}")
    publication = publish(oracle)
    assert fates(publication) == {"s": Fate.MISSED}
    oracle.remove_client("s")
    assert fates(publication) == {"s": Fate.WITHDRAWN}


class Discarding:
    def record(self, row: Row) -> None:
        assert row


def summary_of(builder: SummaryBuilder) -> RunSummary:
    return builder.summary(
        scenario="test",
        protocol="d-dbr",
        seed=1,
        matcher="auto",
        refused=0,
        held=2,
        unsettled=1,
        duplicate_advertisements=0,
        busy_share_max=0.0,
        messages={},
        digest="",
    )


def test_expected_pairs_are_counted_by_their_fates() -> None:
    builder = SummaryBuilder(Discarding())
    for client in ("a", "a", "late"):
        builder.record(DeliveryRow("b1/1/0", "b2", client, 1, 0.0, 1.0))
    assert set(builder.receivers("b1/1/0")) == {"a", "late"}
    kinds = (Fate.DELIVERED, Fate.WITHDRAWN, Fate.LOST, Fate.LOST, Fate.DROPPED, Fate.MISSED)
    builder.evaluate("b1/1/0", dict(zip("abcdef", kinds, strict=True)))
    run = summary_of(builder)
    assert (run.expected, run.withdrawn, run.lost_with_broker, run.dropped) == (6, 1, 2, 1)
    assert (run.owed, run.delivered, run.missed, run.duplicated, run.unexpected) == (2, 2, 1, 1, 1)
    assert (run.held, run.unsettled) == (2, 1)
    assert run.is_weak


@pytest.mark.parametrize(("delivered", "dropped", "is_weak"), [(0, 0, False), (1, 1, False), (1, 2, True)])
def test_a_run_is_weak_if_it_owes_less_than_half_of_the_expected_pairs(
    delivered: int, dropped: int, is_weak: bool
) -> None:
    builder = SummaryBuilder(Discarding())
    pairs = [Fate.DELIVERED] * delivered + [Fate.DROPPED] * dropped
    builder.evaluate("b1/1/0", {f"s{number}": fate for number, fate in enumerate(pairs)})
    assert summary_of(builder).is_weak is is_weak


@pytest.mark.parametrize("reason", ["queue full", "no link", "broker queue full", "delivered when it was over"])
def test_a_dropped_frame_that_is_sent_again_excuses_nothing(reason: str) -> None:
    builder = SummaryBuilder(Discarding())
    builder.record(DropRow(1.0, "b1", reason, "b1/1/0", ""))
    assert not builder.is_dropped("b1/1/0")


@pytest.mark.parametrize("reason", sorted(TERMINAL_DROPS))
def test_a_drop_for_good_excuses_the_publication_that_it_names_and_no_other(reason: str) -> None:
    builder = SummaryBuilder(Discarding())
    builder.record(DropRow(1.0, "b1", reason, None, ""))
    builder.record(DropRow(1.0, "b1", reason, "b1/1/0", ""))
    assert builder.is_dropped("b1/1/0")
    assert not builder.is_dropped("b1/1/1")
    builder.evaluate("b1/1/0", {})
    assert not builder.is_dropped("b1/1/0")
