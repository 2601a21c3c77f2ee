"""Charts of decoders under their bound: what is drawn, and what is refused."""

import pytest

from memcap.errors import ConfigurationError
from memcap.report.bounds import figures

ROW = {"part": "first gradient, N/L", "axis": "N/(L-1)", "samples": 700, "low": 0.1, "high": 0.3, "seeds": 4}
RECORD = {
    "figure": "lower-bound",
    "curves": [
        {**ROW, "line": line, "at": at, "decoder": decoder, "recall": 0.2, "bound": at / 200}
        for line in ("length=8", "length=32")
        for at in (25.0, 100.0, 190.0)
        for decoder in ("matched filter", "message passing")
    ],
}


def test_points_intervals_and_the_dashed_bound(tmp_path):
    (chart,) = figures(RECORD)
    assert chart.name == "lower-bound-first-gradient-n-l"
    assert len(chart.tables["curves"]) == 12
    assert len(chart.tables["bounds"]) == 6  # once, not once a decoder
    svg = chart.save(tmp_path / "chart.svg", theme="light", width=600).read_text()
    assert svg.count('aria-roledescription="point"') == 12
    assert svg.count('stroke-dasharray="5,4"') == 2
    assert "message passing" in svg


def test_the_record_of_another_figure_is_refused():
    with pytest.raises(ConfigurationError, match="expected a record of 'memcap reproduce lower-bound', got figure 'x'"):
        figures({"figure": "x", "curves": [ROW]})
