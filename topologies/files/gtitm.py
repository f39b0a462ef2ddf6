"""GT-ITM's "alt" files: the text form of its graphs, read and written.

    GRAPH (#nodes #edges id uu vv ww xx yy zz):
    2 2 pair
    VERTICES (index name u v w x y z):
    0 T:0.0 12 7
    1 T:0.1 20 3
    EDGES (from-node to-node length a b):
    0 1 9 1

The header counts each edge twice, once for each direction. An edge's last number is its policy weight, 0 for none.
Brokers without positions are all at 0 0. `ms_per_unit` converts lengths to latencies and back. A name that can be a
broker's id (it starts with a letter) becomes the id. Other names, such as GT-ITM's own `T:0.0`, become labels of
brokers b001, b002, … The format has no clusters or bandwidths: they are not written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from topologies.broker_and_link import Broker, Link
from topologies.build import MS_PER_UNIT, Position, latency_of_length, padded_ids
from topologies.errors import OverlayError, OverlayFileError
from topologies.overlay import Overlay
from topologies.validation import is_plain_id

GRAPH_HEADER = "GRAPH (#nodes #edges id uu vv ww xx yy zz):"
VERTICES_HEADER = "VERTICES (index name u v w x y z):"
EDGES_HEADER = "EDGES (from-node to-node length a b):"


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    words: list[str]


@dataclass(frozen=True, slots=True)
class _Vertex:
    name: str
    position: Position


@dataclass(frozen=True, slots=True)
class _Edge:
    ends: tuple[int, int]
    length: float
    policy_weight: int | None


def read_alt_file(path: Path, *, ms_per_unit: float = MS_PER_UNIT) -> Overlay:
    """Reads an alt file."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise OverlayFileError(f"cannot read alt file {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise OverlayFileError(f"alt file {path} is not UTF-8 text: {error.reason}") from error
    return parse_alt(text, str(path), ms_per_unit=ms_per_unit)


def parse_alt(text: str, where: str, *, ms_per_unit: float = MS_PER_UNIT) -> Overlay:
    """Reads an overlay from an alt file's text. `where` names its origin in errors."""
    try:
        return _overlay(_Reader(text), ms_per_unit)
    except (OverlayError, OverlayFileError) as error:
        raise type(error)(f"{where}: {error}") from error


def format_alt(overlay: Overlay, *, ms_per_unit: float = MS_PER_UNIT) -> str:
    """Returns the overlay in the alt format."""
    index_of = {id: index for index, id in enumerate(overlay.ids)}
    name = _one_word(overlay.name) or "overlay"
    lines = [GRAPH_HEADER, f"{len(overlay.ids)} {2 * len(overlay.links)} {name}", "", VERTICES_HEADER]
    for index, broker in enumerate(overlay.brokers):
        x, y = broker.position or (0.0, 0.0)
        lines.append(f"{index} {_one_word(broker.label) or broker.id} {_plain(x)} {_plain(y)}")
    lines += ["", EDGES_HEADER]
    for link in overlay.links:
        length = _plain(link.latency_ms / ms_per_unit)
        lines.append(f"{index_of[link.a]} {index_of[link.b]} {length} {link.policy_weight or 0}")
    return "\n".join(lines) + "\n"


def write_alt_file(path: Path, overlay: Overlay, *, ms_per_unit: float = MS_PER_UNIT) -> None:
    """Writes an alt file."""
    try:
        path.write_text(format_alt(overlay, ms_per_unit=ms_per_unit), encoding="utf-8")
    except OSError as error:
        raise OverlayFileError(f"cannot write alt file {path}: {error.strerror}") from error


def _one_word(text: str | None) -> str:
    return "_".join((text or "").split())


def _plain(number: float) -> str:
    """Returns the number without trailing zeros. GT-ITM's own numbers are whole."""
    return f"{number:.6f}".rstrip("0").rstrip(".")


def _overlay(reader: _Reader, ms_per_unit: float) -> Overlay:
    name, vertex_count, arc_count = _graph(reader)
    vertices = _vertices(reader, vertex_count)
    edges = _edges(reader, vertex_count)
    if 2 * len(edges) != arc_count:
        raise OverlayFileError(
            f"the header counts {arc_count} arcs, which is {arc_count / 2:g} edges, but {len(edges)} are listed"
        )
    names_are_ids = all(vertex.name[0].isalpha() and is_plain_id(vertex.name) for vertex in vertices)
    ids = [vertex.name for vertex in vertices] if names_are_ids else padded_ids(vertex_count)
    placed = any(vertex.position != (0.0, 0.0) for vertex in vertices)
    brokers = tuple(
        Broker(
            id,
            position=vertex.position if placed else None,
            label=None if vertex.name in (id, str(index)) else vertex.name,
        )
        for index, (id, vertex) in enumerate(zip(ids, vertices, strict=True))
    )
    links = tuple(
        Link(
            ids[edge.ends[0]],
            ids[edge.ends[1]],
            latency_ms=latency_of_length(edge.length, ms_per_unit),
            policy_weight=edge.policy_weight,
        )
        for edge in edges
    )
    return Overlay(name, brokers, links)


def _graph(reader: _Reader) -> tuple[str, int, int]:
    reader.section("GRAPH")
    line = reader.next_line("the numbers of nodes and edges")
    if len(line.words) < 2:
        raise reader.error(line, "expected '#nodes #edges id'")
    nodes, arcs = reader.whole(line, 0, "#nodes"), reader.whole(line, 1, "#edges")
    if nodes < 1:
        raise reader.error(line, f"#nodes must be at least 1, not {nodes}")
    name = line.words[2] if len(line.words) > 2 else "gt-itm"
    return name, nodes, arcs


def _vertices(reader: _Reader, count: int) -> list[_Vertex]:
    reader.section("VERTICES")
    vertices: list[_Vertex] = []
    while len(vertices) < count:
        line = reader.next_line(f"vertex {len(vertices)} of {count}")
        if len(line.words) < 4:
            raise reader.error(line, "expected 'index name x y'")
        index = reader.whole(line, 0, "index")
        if index != len(vertices):
            raise reader.error(line, f"vertex {index} where vertex {len(vertices)} was expected")
        vertices.append(_Vertex(line.words[1], (reader.number(line, 2, "x"), reader.number(line, 3, "y"))))
    return vertices


def _edges(reader: _Reader, vertices: int) -> list[_Edge]:
    reader.section("EDGES")
    edges: list[_Edge] = []
    while (line := reader.next_or_none()) is not None:
        if len(line.words) < 3:
            raise reader.error(line, "expected 'from-node to-node length policy-weight'")
        a, b = reader.whole(line, 0, "from-node"), reader.whole(line, 1, "to-node")
        for node in (a, b):
            if not 0 <= node < vertices:
                raise reader.error(line, f"edge to vertex {node}, but vertices are 0 to {vertices - 1}")
        weight = reader.whole(line, 3, "policy weight") if len(line.words) > 3 else 0
        edges.append(_Edge((a, b), reader.number(line, 2, "length"), weight or None))
    return edges


class _Reader:
    """Reads the non-empty lines in order, and creates errors that name a line."""

    def __init__(self, text: str) -> None:
        lines = (_Line(number, line.split()) for number, line in enumerate(text.splitlines(), start=1))
        self._lines: Iterator[_Line] = (line for line in lines if line.words)

    def next_or_none(self) -> _Line | None:
        return next(self._lines, None)

    def next_line(self, expected: str) -> _Line:
        line = self.next_or_none()
        if line is None:
            raise OverlayFileError(f"the file ends where {expected} was expected")
        return line

    def section(self, name: str) -> None:
        line = self.next_line(f"the line '{name} (…):'")
        if line.words[0] != name:
            raise self.error(line, f"expected the line '{name} (…):', not {' '.join(line.words)!r}")

    def whole(self, line: _Line, index: int, what: str) -> int:
        try:
            return int(line.words[index])
        except ValueError:
            raise self.error(line, f"{what} must be a whole number, not {line.words[index]!r}") from None

    def number(self, line: _Line, index: int, what: str) -> float:
        try:
            return float(line.words[index])
        except ValueError:
            raise self.error(line, f"{what} must be a number, not {line.words[index]!r}") from None

    def error(self, line: _Line, message: str) -> OverlayFileError:
        return OverlayFileError(f"line {line.number}: {message}")
