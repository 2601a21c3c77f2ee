"""The picture of parameters against N: what is drawn, and what is refused."""

import json
import re

import numpy as np
import pandas as pd
import pytest
import vl_convert

from memcap.errors import ConfigurationError, DataError
from memcap.report import law_chart
from memcap.report.drawing import vega_lite_version


def table() -> pd.DataFrame:
    n = np.array([1e2, 1e3, 1e4, 1e5])
    rows = [
        pd.DataFrame({"N": n, "parameters": 40 * n**0.5, "series": "memcap build", "kind": "measured"}),
        pd.DataFrame(
            {"N": n[[0, -1]], "parameters": 40 * n[[0, -1]] ** 0.5, "series": "memcap build", "kind": "fitted"}
        ),
        pd.DataFrame({"N": n[[0, -1]], "parameters": n[[0, -1]], "series": "one parameter an item", "kind": "bound"}),
        pd.DataFrame({"N": n[[0, -1]], "parameters": 1.01 * n[[0, -1]], "series": "look-up table", "kind": "bound"}),
    ]
    return pd.concat(rows, ignore_index=True)


def test_points_lines_bounds_and_names_that_do_not_overlap():
    figure = law_chart(table())
    assert len(figure.tables["law"]) == 10
    labels = figure.tables["labels"].sort_values("at")
    assert labels["series"].tolist() == ["memcap build", "one parameter an item", "look-up table"]
    span = np.log(1.01e5 / 400)
    assert (np.diff(np.log(labels["at"])) >= 0.06 * span * (1 - 1e-6)).all()
    svg = vl_convert.vegalite_to_svg(figure.vega_lite("light", width=720), vl_version=vega_lite_version())
    assert svg.count("memcap build") >= 1
    assert svg.count('aria-roledescription="point"') == 4
    assert json.dumps(figure.chart).count("#") == 0


def test_an_interval_is_drawn_where_there_is_one():
    measured = table().assign(low=lambda t: t["parameters"] / 1.1, high=lambda t: t["parameters"] * 1.1)
    svg = vl_convert.vegalite_to_svg(law_chart(measured).vega_lite(), vl_version=vega_lite_version())
    groups = re.findall(r'<g class="mark-rule role-mark[^"]*"[^>]*>(.*?)</g>', svg)
    assert [g.count("<line") for g in groups] == [4]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            lambda t: t.rename(columns={"parameters": "parameter"}),
            ConfigurationError,
            "needs a column 'parameters' .did you mean 'parameter'",
        ),
        (
            lambda t: t.assign(kind="measurd"),
            ConfigurationError,
            "no kind 'measurd' .did you mean 'measured'.*kinds: measured, fitted, bound",
        ),
        (lambda t: t.head(0), DataError, "has no rows"),
        (lambda t: t.assign(N=0), DataError, "N must be positive and finite on a log axis, got 0 in row 0"),
    ],
)
def test_wrong_tables_are_refused(change, error, message):
    with pytest.raises(error, match=message):
        law_chart(change(table()))
