"""Pictures are files that a viewer can open, and show clusters, edge brokers and a legend."""

from __future__ import annotations

from pathlib import Path

import pytest

from topologies.clustering.clusters import cluster_by_size
from topologies.drawing import draw_picture
from topologies.errors import PictureError
from topologies.generators.edge_models import EdgeModel
from topologies.generators.flat import gtitm_flat, random_degree


def test_a_png_is_drawn_and_no_figure_is_left_open(tmp_path: Path) -> None:
    from matplotlib import pyplot
    from matplotlib.image import imread

    draw_picture(gtitm_flat(30, EdgeModel("waxman-2"), seed=1, degree=4), tmp_path / "overlay.png")
    image = imread(tmp_path / "overlay.png")
    assert image.shape[:2] == (1200, 1500)
    assert len({tuple(pixel) for row in image[::5, ::5] for pixel in row}) > 3
    assert pyplot.get_fignums() == []


def test_an_svg_names_brokers_clusters_and_edge_brokers(tmp_path: Path) -> None:
    overlay = cluster_by_size(random_degree(20, degree=3, seed=1), 7)
    draw_picture(overlay, tmp_path / "overlay.svg")
    svg = (tmp_path / "overlay.svg").read_text()
    for words in (*overlay.ids, "edge broker", *overlay.clusters):
        assert f"<!-- {words}" in svg
    assert "random-20: 20 brokers, 30 links, 3 clusters" in svg


def test_a_seed_gives_the_same_picture(tmp_path: Path) -> None:
    overlay = random_degree(12, degree=3, seed=1)
    for name, seed in (("one", 1), ("same", 1), ("other", 2)):
        draw_picture(overlay, tmp_path / f"{name}.svg", seed=seed)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "same.svg").read_bytes()


@pytest.mark.slow
def test_an_overlay_of_six_hundred_brokers_without_positions_is_drawn(tmp_path: Path) -> None:
    draw_picture(cluster_by_size(random_degree(600, degree=3, seed=1), 20), tmp_path / "large.svg")
    svg = (tmp_path / "large.svg").read_text()
    assert "<!-- c23 " in svg
    assert "<!-- … 7 more clusters" in svg


def test_a_file_that_is_no_picture_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PictureError, match=r"overlay.txt: use a name that ends in .png, .svg, .pdf"):
        draw_picture(random_degree(5, degree=3, seed=1), tmp_path / "overlay.txt")
    with pytest.raises(PictureError, match=r"cannot write .*overlay.png: No such file"):
        draw_picture(random_degree(5, degree=3, seed=1), tmp_path / "nowhere" / "overlay.png")
