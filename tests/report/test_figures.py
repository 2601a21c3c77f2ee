"""Figures: every cell is drawn, specifications hold no colour, files need no browser and no network."""

import json
import math
import re

import numpy as np
import pandas as pd
import pytest
import vl_convert
from synthetic_study import DIMENSIONS, EXPONENT, SAMPLES, study_frame

import memcap.report
from memcap.errors import ConfigurationError
from memcap.report.cells import read_cells
from memcap.report.charts.scales import field_of, picked_test
from memcap.report.compose import export
from memcap.report.drawing import Figure, json_value, records, vega_lite_version
from memcap.report.gallery import KINDS, gallery
from memcap.report.subject import subject
from memcap.report.theme import LIGHT, PALETTES, config, ramp


@pytest.fixture(scope="module")
def drawn(frame) -> dict[str, Figure]:
    figures, reasons = gallery(subject(read_cells(frame)))
    assert list(reasons) == ["signal"]  # the toy has no noise budget
    return {f.name: f for f in figures}


def marks(node, kind):
    """All items of the scenegraph's groups of ``kind``."""
    found = []
    if isinstance(node, dict):
        if node.get("marktype") == kind:
            found.append(node)
        for child in node.get("items", []):
            found += marks(child, kind)
    return found


def test_every_row_and_column_of_the_heatmap_is_drawn(drawn):
    spec = drawn["phase"].vega_lite("light", width=600)
    scene = vl_convert.vegalite_to_scenegraph(spec, vl_version=vega_lite_version())["scenegraph"]
    rects = [m["items"] for m in marks(scene, "rect")]
    cells = next(items for items in rects if len(items) == len(DIMENSIONS) * len(SAMPLES))
    assert all(item["width"] > 10 and item["height"] > 10 for item in cells)  # the first row and column too
    assert len({round(item["x"], 3) for item in cells}) == len(DIMENSIONS)
    assert len({round(item["y"], 3) for item in cells}) == len(SAMPLES)
    left, right = min(i["x"] for i in cells), max(i["x"] + i["width"] for i in cells)
    low, high = min(i["y"] for i in cells), max(i["y"] + i["height"] for i in cells)
    plot = marks(scene, "group")[0]["items"][0]
    assert (left, low) == pytest.approx((0, 0), abs=0.01)
    assert (right, high) == pytest.approx((plot["width"], plot["height"]), abs=0.01)


def test_fits_of_the_study_are_drawn(drawn):
    exponents = drawn["exponents"].tables["exponents"]
    assert exponents["source"].tolist() == ["measured", "predicted"]
    assert exponents["low"][0] <= EXPONENT <= exponents["high"][0]
    assert exponents["value"].to_numpy() == pytest.approx([EXPONENT, EXPONENT], abs=0.05)
    boundary = drawn["phase"].tables["boundary"]
    assert boundary.groupby("source")["censored"].apply(list)["measured"].count("above") == 1
    crossing = drawn["critical"].tables["points"].set_index("x")
    seen = crossing[crossing["censored"] == ""]
    assert seen["y"].to_numpy() == pytest.approx([2e6 * d**EXPONENT for d in seen.index], rel=0.1)


def test_the_reason_stands_where_a_figure_cannot_be_drawn(frame):
    bare = frame.drop(columns=["predicted_recall", "seconds"])
    one = bare[bare["dimension"] == 48]
    figures, reasons = gallery(subject(read_cells(one)))
    assert {f.name for f in figures} == {"curves", "states"}
    assert reasons["phase"] == "fewer than two settings vary, so there is no plane to draw"
    assert reasons["times"] == "no cell says how long it took (column seconds)"
    assert "the theory predicts" in reasons["agreement"]
    with pytest.raises(ConfigurationError, match="this study has no figure 'phase': fewer than two settings vary"):
        memcap.report.figure(one, "phase")
    with pytest.raises(ConfigurationError, match="no figure 'fase' .did you mean 'phase'.*; figures: phase, "):
        memcap.report.figure(frame, "fase")


def test_two_points_give_no_exponent_but_a_reason(frame):
    two = frame[frame["dimension"].isin([32, 64])]
    found = subject(read_cells(two))
    for kind in ("exponents", "collapse"):
        assert "at least 3 are needed" in KINDS[kind](found, found.panels[0])


def test_other_settings_become_panels(frame):
    both = pd.concat(
        [frame.assign(vocabulary=v, identity=frame["identity"] + str(v)) for v in (64, 128, 256, 512, 1024)]
    )
    found = subject(read_cells(both))
    assert (len(found.panels), found.hidden) == (4, 1)
    figure = KINDS["phase"](found, found.panels[0])
    assert figure.fixed == {"vocabulary": 64}
    assert figure.title.endswith(", V = 64")


def test_names_and_single_values_are_drawn_too():
    rows = [
        {"activation": a, "embeddings": e, "samples": 100, "seed": s, "state": "done", "recall": 0.1 * i + 0.01 * s}
        for i, (a, e) in enumerate([("relu", "gaussian"), ("tanh", "gaussian"), ("relu", "sphere"), ("tanh", "sphere")])
        for s in range(2)
    ]
    figure = memcap.report.figure(pd.DataFrame(rows))
    assert len(figure.tables["cells"]) == 4
    assert "relu" in vl_convert.vegalite_to_svg(figure.vega_lite(), vl_version=vega_lite_version())


def test_results_outside_the_unit_interval_get_their_own_domain(frame):
    wide = frame.assign(recall=frame["recall"] * 40 - 3).drop(columns="predicted_recall")
    found = subject(read_cells(wide), target=10.0)
    assert not found.unit
    figure = KINDS["phase"](found, found.panels[0])
    scales = json.dumps(figure.chart)
    low, high = wide["recall"].min(), wide["recall"].max()
    values = figure.tables["cells"]["value"]
    assert low <= values.min() < values.max() <= high
    assert '"domain": [0.0, 1.0]' not in scales


def test_specifications_hold_no_colour_and_no_data(drawn):
    for figure in drawn.values():
        text = json.dumps(figure.chart)
        assert "values" not in figure.chart.get("data", {})
        if figure.name != "states":  # states have colours of their own
            assert not re.search(r"#[0-9a-fA-F]{6}", text), figure.name


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "signal"])
def test_a_figure_is_a_strict_specification_in_every_theme(drawn, kind):
    for theme in PALETTES:
        spec = drawn[kind].vega_lite(theme)
        assert json.loads(json.dumps(spec, allow_nan=False)) == spec
        assert set(spec["datasets"]) == set(drawn[kind].tables)
        assert spec["config"]["axis"]["titleColor"] == PALETTES[theme].ink


def test_files_are_written_without_a_browser(drawn, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    written = export([drawn["phase"], drawn["exponents"]], tmp_path, ["svg", "pdf", "png", "json"])
    assert sorted(p.name for p in written if p.stem == "phase") == ["phase.json", "phase.pdf", "phase.png", "phase.svg"]
    assert (tmp_path / "phase.pdf").read_bytes().startswith(b"%PDF-")
    assert (tmp_path / "phase.png").read_bytes().startswith(b"\x89PNG")
    svg = (tmp_path / "phase.svg").read_text(encoding="utf-8")
    assert 'width="241"' in svg
    assert "embedding dimension d" in svg
    assert json.loads((tmp_path / "phase.json").read_text(encoding="utf-8"))["datasets"]["cells"]
    table = pd.read_csv(tmp_path / "phase-cells.csv")
    assert len(table) == len(DIMENSIONS) * len(SAMPLES)
    assert "measured recall over d and N" in (tmp_path / "captions.md").read_text(encoding="utf-8")


def test_a_figure_for_both_columns_is_wider(drawn, tmp_path):
    path = drawn["curves"].save(tmp_path / "curves.svg", columns=2)
    assert 'width="505"' in path.read_text(encoding="utf-8")
    with pytest.raises(ConfigurationError, match="columns must be 1 or 2, got 3"):
        drawn["curves"].vega_lite(columns=3)
    with pytest.raises(ConfigurationError, match="cannot write a figure as 'a.jpg'.*; formats: svg, pdf, png, json"):
        drawn["curves"].save(tmp_path / "a.jpg")
    with pytest.raises(ConfigurationError, match="no theme 'drak' .did you mean 'dark'"):
        config("drak")


def luminance(colour: str) -> float:
    r, g, b = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (r, g, b)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_ramps_survive_a_grey_print_and_text_is_readable(theme):
    palette = PALETTES[theme]
    for colours in (palette.heatmap, palette.ordinal, ramp(theme, 12)):
        steps = np.diff([luminance(c) for c in colours])
        assert (steps > 0).all() or (steps < 0).all()
    middle = len(palette.diverging) // 2
    away = np.sign(np.diff([luminance(c) for c in palette.diverging]))
    assert (away[:middle] == -away[middle:][::-1]).all()

    def contrast(a: str, b: str) -> float:
        high, low = sorted([luminance(a), luminance(b)], reverse=True)
        return (high + 0.05) / (low + 0.05)

    assert contrast(palette.ink, palette.paper) > 7
    assert contrast(palette.soft, palette.paper) > 4.5
    assert contrast(palette.measured, palette.paper) > 3


def test_paper_is_the_light_palette():
    assert PALETTES["paper"] is LIGHT


def test_selection_expressions_and_awkward_names():
    test = picked_test({"x": "dimension", "series": "it's"})
    assert 'datum["x"]' in test
    assert 'picked["it\'s"]' in test
    assert picked_test({}) == "true"
    assert field_of("a.b[0]") == r"a\.b\[0\]"
    frame = study_frame(1).rename(columns={"samples": "data.samples", "dimension": "it's [d]"})
    figure = memcap.report.figure(frame, "agreement")
    assert "it's" in json.dumps(figure.vega_lite())
    vl_convert.vegalite_to_svg(figure.vega_lite(), vl_version=vega_lite_version())


def test_json_values_are_strict():
    values = [math.nan, math.inf, 3.0, 0.123456789, np.int64(4), np.bool_(True), None, "x"]
    assert [json_value(v) for v in values] == [None, None, 3, 0.1234568, 4, True, None, "x"]
    assert records(pd.DataFrame({"a": [1.5, np.nan], "b": ["u", None]})) == [
        {"a": 1.5, "b": "u"},
        {"a": None, "b": None},
    ]


def test_a_fine_grid_draws_some_of_its_curves_and_says_so():
    fine = study_frame(1, dimensions=tuple(range(10, 40)), samples=(1000, 8000, 64000))
    figure = memcap.report.figure(fine, "curves")
    assert figure.tables["points"]["series"].drop_duplicates().tolist() == list(range(10, 40, 3))
    assert "10 of 30 curves are drawn" in figure.caption
