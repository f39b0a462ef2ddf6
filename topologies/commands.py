"""Commands for overlays: generate, show, cluster, and import from GT-ITM."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from topologies.files.toml import OverlayFile
    from topologies.overlay import Overlay
    from topologies.summary import Summary

_Out = Annotated[Path | None, typer.Option("--out", "-o", help="Write the TOML here, not to standard output.")]
_Picture = Annotated[Path | None, typer.Option(help="Draw the overlay into this .png, .svg or .pdf file.")]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
_JoinLinks = Annotated[
    bool, typer.Option(help="Turn ends of links whose ends share no cluster into edge brokers, instead of refusing.")
]
_PerUnit = Annotated[float, typer.Option(help="Latency of a link for each unit of its length.")]


def generate(
    model: Annotated[str, typer.Argument(help="The model; `mercast topology models` lists them.")],
    brokers: Annotated[int | None, typer.Option("--brokers", "-n", help="Number of brokers.")] = None,
    degree: Annotated[float | None, typer.Option("--degree", "-d", help="Mean number of neighbours.")] = None,
    seed: Annotated[int, typer.Option("--seed", "-s", help="The same seed gives the same overlay.")] = 1,
    param: Annotated[
        list[str] | None, typer.Option("--param", "-p", metavar="NAME=VALUE", help="A parameter of the model.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the overlay.")] = None,
    clusters: Annotated[int | None, typer.Option(help="Make clusters of about this many brokers.")] = None,
    cluster_by_domain: Annotated[
        bool, typer.Option("--cluster-by-domain", help="Make clusters of transit-stub or hierarchy domains.")
    ] = False,
    out: _Out = None,
    alt: Annotated[Path | None, typer.Option(help="Write the overlay in GT-ITM's alt format too.")] = None,
    picture: _Picture = None,
) -> None:
    """Generate an overlay, as TOML on standard output unless a file is named.

    \b
    Models: line, ring, star, tree, random, random-regular, and GT-ITM's:
    pure-random, waxman-1, waxman-2, exponential, doar-leslie, locality,
    hierarchy, transit-stub. See: mercast topology models

    \b
    Examples:
      mercast topology generate random -n 100 -d 6 --seed 7 -o overlay.toml
      mercast topology generate waxman-2 -n 50 -d 4 -p beta=0.3 --clusters 10
      mercast topology generate waxman-2 -n 50 -d 4 --picture overlay.png
      mercast topology generate transit-stub -d 6 --cluster-by-domain
      mercast topology generate hierarchy -p levels=10x100 -p joins=2 -d 9
    """
    from topologies import registry
    from topologies.files.toml import OverlayFile

    if clusters is not None and cluster_by_domain:
        raise typer.BadParameter("give --clusters or --cluster-by-domain, not both")
    _check_targets(out, alt, picture)
    given: dict[str, object] = {"brokers": brokers, "degree": degree}
    parameters = {key: value for key, value in given.items() if value is not None} | _parameters(param or [])
    with _busy(f"generating {model}"):
        overlay = registry.generate(model, parameters, seed=seed)
        if name is not None:
            overlay = dataclasses.replace(overlay, name=name)
        overlay = _clustered(overlay, clusters, cluster_by_domain)
    # The picture comes first, because it may fail: a wrong file name extension, or a missing package.
    _draw(overlay, picture)
    if alt is not None:
        from topologies.files.gtitm import write_alt_file

        write_alt_file(alt, overlay)
        _print_note(f"wrote {alt}")
    if out is not None or (alt is None and picture is None):
        _emit(OverlayFile(overlay), out)


def models(
    model: Annotated[str | None, typer.Argument(help="Show only this model.")] = None,
    as_json: _Json = False,
) -> None:
    """List the models of `generate` and their parameters.

    \b
    Examples:
      mercast topology models
      mercast topology models waxman-2
      mercast topology models --json
    """
    from topologies.registry import MODELS, find_model

    shown = MODELS if model is None else {model: find_model(model)}
    if as_json:
        rows = {
            name: {
                "summary": found.summary,
                "parameters": {
                    parameter.name: {
                        "kind": parameter.kind,
                        "needed": parameter.needed,
                        "default": parameter.default,
                        "help": parameter.help,
                    }
                    for parameter in found.parameters
                },
            }
            for name, found in shown.items()
        }
        typer.echo(json.dumps(rows, indent=2))
        return
    for name, found in shown.items():
        typer.echo(f"{name}: {found.summary}")
        for parameter in found.parameters:
            default = "" if parameter.default is None else f" [{_shown(parameter.default)}]"
            typer.echo(f"    {parameter.name}{' (needed)' if parameter.needed else default}: {parameter.help}")


def show(
    file: Annotated[Path, typer.Argument(help="An overlay file.")],
    as_json: _Json = False,
    picture: _Picture = None,
    join_links: _JoinLinks = False,
) -> None:
    """Show an overlay in numbers, and draw it.

    \b
    Examples:
      mercast topology show overlay.toml
      mercast topology show overlay.toml --json
      mercast topology show overlay.toml --picture overlay.svg
    """
    from topologies.files.toml import read_overlay_file
    from topologies.summary import summarise

    overlay = read_overlay_file(file, join_links=join_links).overlay
    summary = summarise(overlay)
    if as_json:
        typer.echo(json.dumps(dataclasses.asdict(summary), indent=2))
    else:
        _print_summary(summary)
    _draw(overlay, picture)


def cluster(
    file: Annotated[Path, typer.Argument(help="An overlay file; clusters in it are replaced.")],
    size: Annotated[int | None, typer.Option(help="Make clusters of about this many brokers.")] = None,
    by_domain: Annotated[
        bool, typer.Option("--by-domain", help="Make clusters of transit-stub or hierarchy domains.")
    ] = False,
    out: _Out = None,
    picture: _Picture = None,
) -> None:
    """Put the brokers of an overlay file into clusters for MERC; all else in the file stays.

    \b
    Examples:
      mercast topology cluster overlay.toml --size 20 --out clustered.toml
      mercast topology cluster transit-stub.toml --by-domain -o merc.toml
    """
    from topologies.files.toml import read_overlay_file

    if (size is None) == (not by_domain):
        raise typer.BadParameter("give --size N or --by-domain")
    _check_targets(out, picture)
    read = read_overlay_file(file, drop_clusters=True)
    with _busy("clustering"):
        overlay = _clustered(read.overlay, size, by_domain)
    _draw(overlay, picture)
    _emit(dataclasses.replace(read, overlay=overlay), out)


def import_alt(
    file: Annotated[Path, typer.Argument(help="A file in GT-ITM's alt format.")],
    ms_per_unit: _PerUnit = 0.1,
    out: _Out = None,
    picture: _Picture = None,
) -> None:
    """Import an overlay from a file in GT-ITM's alt format (what its sgb2alt writes).

    \b
    Examples:
      mercast topology import ts100-0.alt --out overlay.toml
      mercast topology import ts100-0.alt --ms-per-unit 0.5 | grep -c broker
    """
    from topologies.files.gtitm import read_alt_file
    from topologies.files.toml import OverlayFile

    _check_targets(out, picture)
    overlay = read_alt_file(file, ms_per_unit=ms_per_unit)
    _draw(overlay, picture)
    _emit(OverlayFile(overlay), out)


def _check_targets(*paths: Path | None) -> None:
    """Raises an error if one of the files cannot be written, before the first is written."""
    import os
    import tempfile

    from topologies.errors import OverlayFileError

    places: set[str] = set()
    for path in paths:
        if path is None:
            continue
        try:
            if path.is_dir():
                raise OverlayFileError(f"cannot write {path}: it is a folder; name a file")
            if os.path.realpath(path) in places:
                raise OverlayFileError(f"cannot write {path}: it is named twice; each needs a file of its own")
            places.add(os.path.realpath(path))
            if path.exists():
                if not os.access(path, os.W_OK):
                    raise OverlayFileError(f"cannot write {path}: no right to write it")
                continue
            with tempfile.TemporaryFile(dir=path.parent):
                pass
        except OSError as error:
            raise OverlayFileError(f"cannot write {path}: {error.strerror}") from error


def _parameters(texts: list[str]) -> dict[str, object]:
    parameters: dict[str, object] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"--param takes NAME=VALUE, such as alpha=0.4, not {text!r}")
        parameters[name.strip().replace("-", "_")] = value.strip()
    return parameters


def _clustered(overlay: Overlay, size: int | None, by_domain: bool) -> Overlay:
    from topologies.clustering.clusters import cluster_by_domain, cluster_by_size

    if by_domain:
        return cluster_by_domain(overlay)
    if size is None:
        return overlay
    clustered = cluster_by_size(overlay, size)
    if len(clustered.clusters) > 1 and 2 * len(clustered.edge_brokers) > len(clustered.ids):
        _print_note(
            f"{len(clustered.edge_brokers)} of {len(clustered.ids)} brokers are edge brokers: this overlay has many "
            "links between any clusters; a hierarchy or a transit-stub overlay suits MERC better"
        )
    return clustered


def _draw(overlay: Overlay, picture: Path | None) -> None:
    if picture is not None:
        from topologies.drawing import draw_picture

        with _busy(f"drawing {picture}"):
            draw_picture(overlay, picture)
        _print_note(f"wrote {picture}")


def _emit(file: OverlayFile, out: Path | None) -> None:
    from topologies.files.toml import format_overlay, write_overlay_file

    if out is None:
        typer.echo(format_overlay(file), nl=False)
        return
    write_overlay_file(out, file)
    overlay = file.overlay
    counts = f"{len(overlay.ids)} brokers, {len(overlay.links)} links"
    if overlay.clusters:
        counts += f", {len(overlay.clusters)} clusters, {len(overlay.edge_brokers)} edge brokers"
    _print_note(f"wrote {out}: {counts}")


def _print_summary(summary: Summary) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table(title=summary.name, title_justify="left", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    rows = {
        "brokers": summary.brokers,
        "links": summary.links,
        "degree, least / mean / most": f"{summary.degree_min} / {summary.degree_mean:.2f} / {summary.degree_max}",
        "diameter in hops": summary.diameter_hops,
        "mean shortest path in hops": f"{summary.path_hops_mean:.2f}",
        "mean latency of a link in ms": f"{summary.latency_ms_mean:.2f}",
        "clusters": len(summary.clusters),
        "edge brokers": len(summary.edge_brokers),
    }
    for words, value in rows.items():
        table.add_row(words, str(value))
    console.print(table)
    if not summary.clusters:
        return
    clusters = Table("cluster", title="clusters", title_justify="left")
    for words in ("brokers", "edge brokers", "diameter in hops"):
        clusters.add_column(words, justify="right")
    for found in summary.clusters:
        clusters.add_row(found.name, str(found.brokers), str(found.edge_brokers), str(found.diameter_hops))
    console.print(clusters)
    if summary.single_edge_pairs:
        console.print("pairs of clusters that only one edge broker joins:")
        for pair in summary.single_edge_pairs:
            console.print(f"  {' - '.join(pair.clusters)} by {pair.edge_broker}", highlight=False)


def _shown(default: object) -> str:
    return "x".join(map(str, default)) if isinstance(default, tuple) else str(default)


def _busy(words: str) -> AbstractContextManager[object]:
    """Shows progress on a terminal. Elsewhere it does nothing and does not load rich."""
    if not sys.stderr.isatty():
        return nullcontext()
    from rich.console import Console

    return Console(stderr=True).status(f"{words} …")


def _print_note(words: str) -> None:
    typer.echo(words, err=True)


COMMANDS: dict[str, Callable[..., None]] = {
    "topology generate": generate,
    "topology models": models,
    "topology show": show,
    "topology cluster": cluster,
    "topology import": import_alt,
}
