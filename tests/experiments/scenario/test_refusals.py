"""Proves that an invalid scenario is refused with a message that names the file, or --set, and the key."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from experiments.errors import ScenarioError
from experiments.scenario.load import (
    build_overlay,
    cores_of,
    fault_steps,
    load,
    metric_of,
    place_clients,
    publications,
)

GOOD = {
    "protocols": '["d-dbr"]',
    "overlay": {"model": '"random"', "brokers": "10", "degree": "3"},
    "workload": {"publications": "10"},
}


def written(folder: Path, section: str, key: str, value: str) -> Path:
    """Writes a valid scenario with one key changed to a file."""
    lines = [f"{key} = {value}"] if not section else []
    lines += [f"protocols = {GOOD['protocols']}"] if (section, key) != ("", "protocols") else []
    for name in ("overlay", "workload"):
        keys = GOOD[name]
        assert isinstance(keys, dict)
        lines += [f"[{name}]", *(f"{k} = {v}" for k, v in keys.items() if (section, key) != (name, k))]
        lines += [f"{key} = {value}"] if section == name else []
    if section and section not in GOOD:
        lines += [f"[{section}]", f"{key} = {value}"]
    path = folder / "wrong.toml"
    path.write_text("\n".join(lines))
    return path


REFUSALS = [
    ("", "matcher", '"pst-blom"', "matcher is 'pst-blom'; did you mean 'pst-bloom'?"),
    ("", "matcher", "3", "matcher is 3; it must be text"),
    ("", "protocols", '["ddbr"]', "protocols names 'ddbr'; did you mean 'd-dbr'?"),
    ("", "protocols", '["fbr", "fbr"]', "protocols is ['fbr', 'fbr']; it must name one or more, each once"),
    ("", "protocols", "[]", "protocols is []; it must name one or more"),
    ("", "protocols", '["merc"]', "overlay.clusters is missing, and merc needs clusters; write clusters = {size = 10}"),
    ("", "advertise", '"opne"', "advertise is 'opne'; did you mean 'open'?"),
    ("", "seed", "-1", "seed is -1; it must be at least 0"),
    ("", "seed", "1.5", "seed is 1.5; it must be a whole number"),
    ("", "sead", "1", "sead is unknown; did you mean 'seed'?"),
    ("", "brokers", "3", "brokers is 3; it must be a table"),
    ("", "fault", "3", "fault is 3; it must be a list of tables; write [[fault]] above each"),
    ("overlay", "model", '"randon"', "overlay.model is 'randon'; did you mean 'random'?"),
    ("overlay", "model", "[]", "overlay.model is []; it must be text"),
    ("overlay", "degre", "3", "overlay.degre is unknown; did you mean 'degree'?"),
    ("overlay", "branching", "3", "overlay.branching is unknown"),
    ("overlay", "degree", "10", "overlay.degree is 10; with brokers = 10 it must be above 0 and below 10"),
    ("overlay", "degree", '"6"', "overlay.degree is '6'; it must be a number"),
    ("overlay", "brokers", "0", "overlay.brokers is 0; it must be at least 1"),
    ("overlay", "brokers", "true", "overlay.brokers is true; it must be a whole number"),
    ("overlay", "file", '"x.toml"', "overlay.model excludes file"),
    ("overlay", "latency_ms", "-1", "overlay.latency_ms is -1; it must be at least 0"),
    ("overlay", "bandwidth_mbit", "0", "overlay.bandwidth_mbit is 0; it must be above 0"),
    ("overlay", "clusters", "{}", "overlay.clusters must be one of {by = 'domain'}, {size = N} and {count = N}"),
    ("overlay", "clusters", "{size = 2, count = 3}", "overlay.clusters must be one of"),
    ("overlay", "clusters", '{by = "size"}', "overlay.clusters.by is 'size'; known: domain"),
    ("overlay", "clusters", "{sise = 2}", "overlay.clusters.sise is unknown; did you mean 'size'?"),
    ("overlay", "clusters", "{size = 0}", "overlay.clusters.size is 0; it must be at least 1"),
    ("overlay", "clusters", "5", "overlay.clusters is 5; it must be a table"),
    ("overlay.merc", "model", '"ring"', "overlay.merc.brokers is missing; model 'ring' needs it: number of brokers"),
    ("overlay.merc", "file", '"x.toml"', "x.toml', and there is no such file"),
    ("overlay.mercy", "degree", "2", "overlay.mercy is unknown; did you mean 'merc'?"),
    ("brokers", "cores", "0", "brokers.cores is 0; it must be at least 1"),
    ("brokers", "profile", '"padres"', "brokers.profile is 'padres'; did you mean 'padres-2015'?"),
    ("brokers", "start", "true", "brokers.start is true; it must be 'cold' or 'known'"),
    ("clients", "publishers", '"all"', "clients.publishers is 'all'; it must be a whole number, at least 1, or 'each'"),
    ("clients", "publishers", "0", "clients.publishers is 0; it must be at least 1"),
    ("clients", "publishers_at", "[1]", "clients.publishers_at.1 is 1; it must be text"),
    ("clients", "placement", '"rand"', "clients.placement is 'rand'; did you mean 'random'?"),
    ("clients", "advertised_share", "1.5", "clients.advertised_share is 1.5; it must be above 0 and at most 1"),
    ("clients", "advertised_share", "0", "clients.advertised_share is 0; it must be above 0"),
    ("clients.churn", "per_minute", "-2", "clients.churn.per_minute is -2; it must be at least 0"),
    ("clients.churn", "mean_stay", "3", "clients.churn.mean_stay is unknown; did you mean 'mean_stay_s'?"),
    ("workload", "rate", "0", "workload.rate is 0; it must be above 0"),
    ("workload", "rate", "nan", "workload.rate is nan; it must be a number"),
    ("workload", "rate", "inf", "workload.rate is inf; it must be a number"),
    ("workload", "rat", "3", "workload.rat is unknown; did you mean 'rate'?"),
    ("workload", "kind", '"stock-qoutes"', "workload.kind is 'stock-qoutes'; did you mean 'stock-quotes'?"),
    ("workload", "symbols", "0", "workload.symbols is 0; it must lie between 1 and"),
    ("workload", "zipf", '"uniform"', "workload.zipf is 'uniform'; it must be a number"),
    ("workload", "kinds", "[1, 2]", "workload.kinds is (1.0, 2.0); it must be four shares"),
    ("workload", "kinds", '"all"', "workload.kinds is 'all'; it must be a list, each a number"),
    ("workload", "coverage", '"mine"', "workload.coverage is 'mine'; known: all, own"),
    ("workload", "cardinality", "5", "workload.cardinality is unknown"),
    ("workload", "publications", "0", "workload.publications is 0; it must be at least 1"),
    ("workload", "duration_s", "3", "workload.publications excludes duration_s; give one of them"),
    ("workload", "arrivals", '"file"', "workload.times_file is missing, and arrivals is 'file'"),
    ("workload", "times_file", '"t.txt"', "t.txt', and there is no such file"),
    ("workload", "file", '"quotes.csv"', "quotes.csv', and there is no such file"),
    ("reorganise", "period_s", "-1", "reorganise.period_s is -1; it must be at least 0"),
    ("reorganise", "max_degree", "0", "reorganise.max_degree is 0; it must be at least 1"),
    ("fault_rates", "share_of_links", "2", "fault_rates.share_of_links is 2; it must be at least 0 and at most 1"),
    ("run", "settle_s", '"10s"', "run.settle_s is '10s'; it must be a number"),
]


@pytest.mark.parametrize(("section", "key", "value", "message"), REFUSALS)
def test_a_wrong_value_is_refused_with_its_file_and_key(
    section: str, key: str, value: str, message: str, tmp_path: Path
) -> None:
    path = written(tmp_path, section, key, value)
    with pytest.raises(ScenarioError) as refusal:
        load(path)
    assert str(refusal.value).startswith(f"{path}: ")
    assert message in str(refusal.value)
    assert refusal.value.exit_code == 3


def test_the_scenario_that_the_others_are_made_from_is_good(tmp_path: Path) -> None:
    assert load(written(tmp_path, "workload", "rate", "100")).workload.rate == 100


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("", "fault.1.at_s is missing; it must be a number, at least 0"),
        ("at_s = 1\nkind = 'crush'", "fault.1.kind is 'crush'; did you mean 'crash'?"),
        ("at_s = -1\nkind = 'crash'\nbrokers = ['b001']", "fault.1.at_s is -1; it must be at least 0"),
        ("at_s = 1\nkind = 'crash'", "fault.1.brokers is missing; 'crash' must say which brokers it is about"),
        ("at_s = 1\nkind = 'cut'", "fault.1.links is missing; 'cut' must say which links it is about"),
        ("at_s = 1\nkind = 'cut'\nlinks = ['b001']", "fault.1.links.1 is 'b001'; it must be a list of 2, each text"),
        ("at_s = 1\nkind = 'cut'\nlinks = [['a', 'b']]\nbrokers = ['a']", "fault.1.brokers is given"),
        ("at_s = 1\nkind = 'crash'\nlinks = [['a', 'b']]\nbrokers = ['a']", "fault.1.links is given"),
        ("at_s = 1\nkind = 'restart'\nbrokers = ['a']\nuntil_s = 3", "fault.1.until_s is given, and 'restart' has no"),
        ("at_s = 3\nkind = 'loss'\nloss = 0.5\nuntil_s = 3", "fault.1.until_s is 3; it must be after at_s, 3"),
        ("at_s = 3\nkind = 'loss'", "fault.1.loss must be above 0"),
        ("at_s = 3\nkind = 'delay'\nloss = 0.5", "fault.1.delay_ms must be above 0"),
        ("at_s = 3\nkind = 'delay'\ndelay_ms = 5\nloss = 0.5", "fault.1.loss is given, and the kind is 'delay'"),
        ("at_s = 3\nkind = 'loss'\nloss = 1.5", "fault.1.loss is 1.5; it must be at least 0 and at most 1"),
    ],
)
def test_a_fault_that_cannot_happen_is_refused_by_number(keys: str, message: str, tmp_path: Path) -> None:
    path = written(tmp_path, "workload", "rate", "100")
    path.write_text(f"{path.read_text()}\n[[fault]]\n{keys}\n")
    with pytest.raises(ScenarioError, match=re.escape(message)):
        load(path)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("workload.rate", "-3", "--set: workload.rate is -3; it must be above 0"),
        ("workload.rate", "fast", "--set: workload.rate is 'fast'; it must be a number"),
        ("worklod.rate", "3", "--set: worklod is unknown; did you mean 'workload'?"),
        ("workload.rte", "3", "--set: workload.rte is unknown; did you mean 'rate'?"),
        ("seed.x", "3", "--set: seed is not a table, so it has no keys to set"),
        ("workload.", "3", "--set: workload. is no key; write section.key=value"),
        ("", "3", "is no key; write section.key=value"),
        ("overlay.degree", "20", "--set: overlay.degree is 20; with brokers = 20"),
        ("overlay.clusters.size", "-1", "--set: overlay.clusters.size is -1; it must be at least 1"),
        ("clients.churn", "{per_minute = -1}", "--set: clients.churn.per_minute is -1"),
    ],
)
def test_what_was_typed_is_named_as_such(key: str, value: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=re.escape(message)):
        load("gtitm-20", {"seed": "2", key: value})


def test_what_the_file_says_is_not_blamed_on_what_was_typed(tmp_path: Path) -> None:
    path = written(tmp_path, "workload", "rate", "-1")
    with pytest.raises(ScenarioError, match=r"wrong\.toml: workload\.rate is -1"):
        load(path, {"workload.zipf": "1"})


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(ScenarioError, match=r"no scenario is called 'gtitm-10' .*; did you mean 'gtitm-100'\?"):
        load("gtitm-10")


def test_a_name_like_no_other_is_answered_with_all() -> None:
    with pytest.raises(ScenarioError, match="known: churn, failures, gtitm-100"):
        load("zzzz")


def test_a_file_that_is_not_toml_is_refused_by_line(tmp_path: Path) -> None:
    (tmp_path / "broken.toml").write_text("[overlay\n")
    with pytest.raises(ScenarioError, match=r"broken.toml is not TOML: .*line 1"):
        load(tmp_path / "broken.toml")


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "broken.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ScenarioError, match=r"broken.toml is not UTF-8 text"):
        load(tmp_path / "broken.toml")


def test_open_advertising_and_a_share_of_advertisements_exclude_each_other() -> None:
    with pytest.raises(ScenarioError, match=r"clients\.advertised_share is 0\.6, and with advertise = 'open'"):
        load("gtitm-100", {"advertise": "open"})


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"overlay.degree": "0.5"}, "gtitm-20: overlay: degree 0.5 leaves 20 brokers disconnected"),
        ({"overlay.model": "pure-random", "overlay.degree": "", "overlay.alpha": "2"}, "gtitm-20: overlay: alpha"),
        ({"overlay.clusters": "{by = 'domain'}"}, "gtitm-20: overlay: .* has no domains to make clusters of"),
    ],
)
def test_an_overlay_that_cannot_be_built_is_refused_with_its_place(overrides: dict[str, str], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        build_overlay(load("gtitm-20", overrides), "merc")


def test_an_overlay_of_a_protocols_own_is_named_when_it_cannot_be_built() -> None:
    with pytest.raises(ScenarioError, match=r"gtitm-100: overlay\.merc: "):
        build_overlay(load("gtitm-100", {"overlay.merc.degree": "1"}), "merc")


def test_an_overlay_file_without_clusters_is_refused_under_merc(tmp_path: Path) -> None:
    net = tmp_path / "net.toml"
    net.write_text('schema = 1\n[[broker]]\nid = "a"\n[[broker]]\nid = "b"\n[[link]]\nbetween = ["a", "b"]\n')
    loaded = load("line", {"overlay.file": str(net), "overlay.clusters": ""})
    assert build_overlay(loaded, "d-dbr").ids == ("a", "b")
    with pytest.raises(ScenarioError, match=r"overlay\.file is .*net\.toml', whose brokers are in no clusters"):
        build_overlay(loaded, "merc")


def test_cores_that_an_overlay_file_cannot_mean_are_refused(tmp_path: Path) -> None:
    net = tmp_path / "net.toml"
    net.write_text('schema = 1\n[[broker]]\nid = "a"\ncores = 0\n')
    loaded = load("line", {"overlay.file": str(net)})
    with pytest.raises(ScenarioError, match=r"net\.toml: cores of broker a is 0; it must be at least 1"):
        cores_of(loaded, "d-dbr", build_overlay(loaded, "d-dbr"))


def test_a_metric_that_an_overlay_file_cannot_mean_is_refused(tmp_path: Path) -> None:
    net = tmp_path / "net.toml"
    net.write_text('schema = 1\n[overlay]\nmetric = "latencies"\n[[broker]]\nid = "a"\n')
    with pytest.raises(ScenarioError, match=r"net\.toml: \[overlay\] metric is 'latencies'; .*latency"):
        metric_of(load("line", {"overlay.file": str(net)}), "d-dbr")


def test_clients_at_an_unknown_broker_are_refused_with_the_nearest_id() -> None:
    loaded = load("line", {"clients.subscribers_at": "b0005"})
    with pytest.raises(ScenarioError, match=r"line: clients\.subscribers_at names 'b0005'; did you mean 'b005'\?"):
        place_clients(loaded, build_overlay(loaded, "d-dbr"))


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("{at_s = 1, kind = 'crash', brokers = ['b009']}", "fault.1.brokers names 'b009'; did you mean 'b00"),
        ("{at_s = 1, kind = 'cut', links = [['b001', 'b003']]}", "fault.1.links names b001-b003, which is no link"),
        (
            "{at_s = 1, kind = 'partition', brokers = ['b001', 'b002', 'b003', 'b004', 'b005']}",
            "fault.1.brokers names all brokers",
        ),
    ],
)
def test_a_fault_of_what_is_not_there_is_refused(fault: str, message: str) -> None:
    loaded = load("line", {"fault": f"[{fault}]"})
    with pytest.raises(ScenarioError, match=re.escape(message)):
        fault_steps(loaded, build_overlay(loaded, "d-dbr"))


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ("", "times.txt has no times"),
        ("1\nsoon\n", "times.txt, line 2 is 'soon'; it must be a time in seconds"),
        ("1\n\n-2\n", "times.txt, line 3 is '-2'; it must be a time in seconds"),
        ("nan\n", "times.txt, line 1 is 'nan'"),
        ("2\n1\n", "times.txt, line 2: 1 is earlier than the time before it"),
    ],
)
def test_a_file_of_times_is_refused_by_line(times: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "times.txt").write_text(times)
    loaded = load("line", {"workload.arrivals": "file", "workload.times_file": str(tmp_path / "times.txt")})
    with pytest.raises(ScenarioError, match=re.escape(message)):
        list(publications(loaded, place_clients(loaded, build_overlay(loaded, "d-dbr"))))
