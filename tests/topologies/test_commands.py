"""The commands write data to standard output and messages to standard error. Errors say what to type."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from topologies.commands import COMMANDS
from topologies.errors import OverlayFileError, ParameterError, PictureError
from topologies.files.gtitm import read_alt_file
from topologies.files.toml import parse_overlay, read_overlay_file
from topologies.registry import MODELS, generate

ROOT = Path(__file__).resolve().parents[2]


def compose() -> typer.Typer:
    app = typer.Typer()
    for words, function in COMMANDS.items():
        app.command(words.partition(" ")[2])(function)
    return app


APP = compose()


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(APP, [str(argument) for argument in arguments], catch_exceptions=True)


def succeed(*arguments: str | Path) -> Result:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result


def test_generate_writes_toml_to_standard_output_and_nothing_else() -> None:
    result = succeed("generate", "random", "-n", "12", "-d", "3", "--seed", "5", "--name", "twelve")
    overlay = parse_overlay(result.stdout, "stdout").overlay
    assert overlay.name == "twelve"
    assert overlay.links == generate("random", {"brokers": 12, "degree": 3}, seed=5).links
    assert result.stderr == ""


def test_generate_writes_files_and_reports_them_on_standard_error(tmp_path: Path) -> None:
    out, alt, picture = tmp_path / "o.toml", tmp_path / "o.alt", tmp_path / "o.png"
    result = succeed(
        "generate", "transit-stub", "-d", "6", "--cluster-by-domain", "-o", out, "--alt", alt, "--picture", picture
    )
    assert result.stdout == ""
    assert "100 brokers, 300 links, 11 clusters, 10 edge brokers" in result.stderr
    assert len(read_overlay_file(out).overlay.edge_brokers) == 10
    assert read_alt_file(alt).links == read_overlay_file(out).overlay.links
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_generate_accepts_parameters_and_cluster_sizes() -> None:
    result = succeed("generate", "hierarchy", "-p", "levels=3x10", "-p", "joins=2", "-d", "4", "--clusters", "10")
    assert len(parse_overlay(result.stdout, "stdout").overlay.clusters) == 3


def test_generate_warns_where_most_brokers_become_edge_brokers() -> None:
    result = succeed("generate", "random", "-n", "60", "-d", "9", "--clusters", "10")
    assert "brokers are edge brokers" in result.stderr
    parse_overlay(result.stdout, "stdout")


def test_wrong_use_of_generate_is_refused() -> None:
    both = run("generate", "transit-stub", "--clusters", "5", "--cluster-by-domain")
    assert both.exit_code == 2
    assert "not both" in both.output
    odd = run("generate", "random", "-p", "degree")
    assert odd.exit_code == 2
    assert "NAME=VALUE" in odd.output
    unknown = run("generate", "rndom", "-n", "5")
    assert isinstance(unknown.exception, ParameterError)


def test_the_help_of_generate_names_every_model() -> None:
    text = succeed("generate", "--help").output
    assert [model for model in MODELS if model not in text] == []
    assert "Examples:" in text


def test_models_lists_every_model_and_parameter() -> None:
    result = succeed("models", "--json")
    listed = json.loads(result.stdout)
    assert list(listed) == list(MODELS)
    assert listed["random"]["parameters"]["degree"] == {
        "kind": "number",
        "needed": False,
        "default": 3.0,
        "help": "mean degree",
    }
    assert "beta [0.2]" in succeed("models", "waxman-2").stdout
    assert "levels [10x10]" in succeed("models").stdout


def test_show_prints_a_table_or_json(tmp_path: Path) -> None:
    out = tmp_path / "line.toml"
    succeed("generate", "line", "-n", "10", "--clusters", "5", "--out", out)
    table = succeed("show", out).stdout
    assert "edge brokers" in table
    assert "c01 - c02 by b005" in table
    numbers = json.loads(succeed("show", out, "--json").stdout)
    assert numbers["brokers"] == 10
    assert numbers["diameter_hops"] == 9
    assert numbers["single_edge_pairs"] == [{"clusters": ["c01", "c02"], "edge_broker": "b005"}]
    succeed("show", out, "--picture", tmp_path / "line.svg")
    assert "<svg" in (tmp_path / "line.svg").read_text()


def test_show_joins_unshared_links_on_request(tmp_path: Path) -> None:
    file = tmp_path / "two.toml"
    file.write_text(
        'schema = 1\n[[broker]]\nid = "b1"\nclusters = ["w"]\n[[broker]]\nid = "b2"\nclusters = ["e"]\n'
        '[[link]]\nbetween = ["b1", "b2"]\n'
    )
    assert "--join-links" in str(run("show", file).exception)
    assert json.loads(succeed("show", file, "--json", "--join-links").stdout)["edge_brokers"] == ["b1"]


def test_cluster_replaces_clusters_and_keeps_all_else(tmp_path: Path) -> None:
    file, out = tmp_path / "ring.toml", tmp_path / "clustered.toml"
    succeed("generate", "ring", "-n", "12", "--out", file)
    text = file.read_text().replace('id = "b003"', 'id = "b003"\nlisten = "127.0.0.1:7003"\nclusters = ["odd"]')
    file.write_text(text.replace("[overlay]", '[overlay]\nprotocol = "merc"'))
    succeed("cluster", file, "--size", "4", "--out", out)
    clustered = read_overlay_file(out)
    assert clustered.overlay.clusters == ("c01", "c02", "c03")
    assert clustered.settings == {"protocol": "merc"}
    assert clustered.broker_settings == {"b003": {"listen": "127.0.0.1:7003"}}


def test_cluster_by_domain_reads_labels_from_the_file(tmp_path: Path) -> None:
    file = tmp_path / "transit.toml"
    succeed("generate", "transit-stub", "-d", "6", "--out", file)
    clustered = parse_overlay(succeed("cluster", file, "--by-domain").stdout, "stdout").overlay
    assert len(clustered.members("backbone")) == 10
    assert run("cluster", file).exit_code == 2
    assert run("cluster", file, "--by-domain", "--size", "5").exit_code == 2


def test_import_reads_an_alt_file(tmp_path: Path) -> None:
    alt = tmp_path / "w.alt"
    succeed("generate", "waxman-2", "-n", "20", "-d", "4", "--alt", alt)
    imported = parse_overlay(succeed("import", alt).stdout, "stdout").overlay
    assert imported == generate("waxman-2", {"brokers": 20, "degree": 4})
    slower = parse_overlay(succeed("import", alt, "--ms-per-unit", "1").stdout, "stdout").overlay
    assert slower.links[0].latency_ms == pytest.approx(10 * imported.links[0].latency_ms)


def test_an_error_is_one_line_on_standard_error_with_exit_code_three(tmp_path: Path) -> None:
    missing = tmp_path / "missing.toml"
    done = subprocess.run(
        [sys.executable, "-m", "mercast", "topology", "show", missing], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert done.stdout == ""
    assert done.stderr == f"mercast: cannot read overlay file {missing}: No such file or directory\n"


def test_importing_topologies_loads_no_large_library() -> None:
    script = (
        "import sys, topologies, topologies.commands, topologies.files.toml\n"
        "print([name for name in ('networkx', 'matplotlib', 'numpy', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("target", ["--out", "--alt", "--picture"])
@pytest.mark.parametrize("bad", ["none/x.svg", "", f"{300 * 'x'}.svg"])
def test_with_one_target_that_cannot_be_written_none_is(tmp_path: Path, target: str, bad: str) -> None:
    targets = {"--out": tmp_path / "o.toml", "--alt": tmp_path / "o.alt", "--picture": tmp_path / "o.svg"}
    targets[target] = tmp_path / bad
    result = run("generate", "line", "-n", "3", *(word for pair in targets.items() for word in pair))
    assert isinstance(result.exception, OverlayFileError)
    assert str(result.exception).startswith(f"cannot write {tmp_path / bad}: ")
    assert not list(tmp_path.iterdir())


def test_a_picture_that_cannot_be_drawn_leaves_no_other_file(tmp_path: Path) -> None:
    endings = {"out": "toml", "alt": "alt", "picture": "xyz"}
    targets = [f"--{option}={tmp_path}/o.{ending}" for option, ending in endings.items()]
    result = run("generate", "line", "-n", "3", *targets)
    assert isinstance(result.exception, PictureError)
    assert not list(tmp_path.iterdir())


def test_two_targets_with_one_name_are_refused(tmp_path: Path) -> None:
    targets = ("--out", str(tmp_path / "o"), "--alt", f"{tmp_path}/../{tmp_path.name}/o")
    result = run("generate", "line", "-n", "3", *targets)
    assert isinstance(result.exception, OverlayFileError)
    assert str(result.exception).endswith("/o: it is named twice; each needs a file of its own")
    assert not list(tmp_path.iterdir())
