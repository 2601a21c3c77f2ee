"""The page as a file: complete, offline, small, the same for the same study, and safe for any text."""

import json
import re

import pandas as pd
import pytest
from synthetic_study import study_frame

import memcap.report
from memcap.errors import ConfigurationError

HOSTILE = '</script><script>window.hacked=1</script><img src=x onerror="window.hacked=2"> & {{ 7*7 }}'


@pytest.fixture(scope="module")
def text(frame, tmp_path_factory) -> str:
    path = memcap.report.write(frame, tmp_path_factory.mktemp("page") / "r.html", question="Why?\n\nHow?")
    return path.read_text(encoding="utf-8")


def data_of(text: str) -> dict:
    return json.loads(re.search(r'<script type="application/json" id="report-data">(.*?)</script>', text, re.S)[1])


def test_one_small_file_without_a_network(text):
    assert len(text.encode()) < 2_000_000
    page = re.sub(r"<script.*?</script>", "", text, flags=re.S)
    assert not re.findall(r"(?:src|href)=[\"'](?!#|data:)[^\"']*", page)
    assert "url(" not in page
    assert "default-src 'none'" in page
    assert "unsafe-eval" not in page
    assert text.count("<figure ") == len(data_of(text)["figures"]) == 11


def test_twelve_figures_fit_into_two_megabytes(tmp_path):
    frame = pd.concat([study_frame().assign(vocabulary=v) for v in (256, 512)], ignore_index=True)
    frame["identity"] = [f"{i:032x}" for i in range(len(frame))]
    path = memcap.report.write(frame, tmp_path / "r.html")
    assert path.read_text(encoding="utf-8").count("<figure ") >= 12
    assert path.stat().st_size < 2_000_000


def test_it_says_question_method_versions_failures_and_what_is_not_drawn(text):
    for words in (
        '<p class="lead">Why?</p>',
        '<p class="lead">How?</p>',
        "Intervals of cells are Student&#39;s t over seeds",
        "memcap (report)",
        "209 / 213",
        "MemoryError: needs 5 GiB, limit 4 GiB",
        "samples ≥ 32,000 (censored)",
        "<b>signal</b>: no cell holds variances by source",
        "vocabulary V (tokens)",
    ):
        assert words in text, words


def test_the_table_holds_every_cell(text, frame):
    cells = data_of(text)["cells"]
    assert len(cells["columns"]["recall"]) == len(frame)
    assert cells["columns"]["recall"].count(None) == 4  # failed cells have no recall, not 0
    assert cells["axes"] == ["samples", "dimension"]
    assert cells["shown"] == ["samples", "dimension", "seed", "state", "recall", "predicted_recall", "seconds", "error"]


@pytest.fixture(scope="module")
def small(frame):
    """One line of the study without predictions: few figures, so that pages are quick to write."""
    return frame[frame["dimension"] == 12].drop(columns="predicted_recall")


def test_the_same_study_gives_the_same_bytes(small, tmp_path):
    first = memcap.report.write(small, tmp_path / "a.html").read_bytes()
    assert memcap.report.write(small.copy(), tmp_path / "b.html").read_bytes() == first


def test_texts_of_a_study_are_data(small, tmp_path):
    bad = small.copy()
    bad["error"] = [HOSTILE if e is not None and e == e else None for e in bad["error"]]
    bad["embeddings"] = HOSTILE
    path = memcap.report.write(bad, tmp_path / "h.html", question=HOSTILE, method=HOSTILE, title=HOSTILE)
    text = path.read_text(encoding="utf-8")
    assert "<script>window.hacked" not in text
    assert "<img" not in re.sub(r"<script.*?</script>", "", text, flags=re.S)
    assert data_of(text)["cells"]["columns"]["error"].count(HOSTILE) == 3


def test_recorded_curves_travel_with_their_cells(small, tmp_path):
    traced = small.copy()
    traced["loss"] = [[1.0, 0.5, float(i)] for i in range(len(traced))]
    traced["interval"] = [["a"]] * len(traced)
    data = data_of(memcap.report.write(traced, tmp_path / "t.html").read_text(encoding="utf-8"))
    assert data["cells"]["traces"] == ["loss"]
    assert data["cells"]["columns"]["loss"][3] == [1, 0.5, 3]
    assert "trace:loss" in data["minis"]
    assert "interval" not in data["cells"]["columns"]


def test_wrong_calls_say_what_to_do(frame, tmp_path):
    with pytest.raises(ConfigurationError, match="a report is one HTML file: name it .*html, got '.*r.pdf'"):
        memcap.report.write(frame, tmp_path / "r.pdf")
    with pytest.raises(ConfigurationError, match="no figure format 'tiff'; formats: svg, pdf, png, json"):
        memcap.report.write(frame, tmp_path / "r.html", formats=["tiff"])
    with pytest.raises(AttributeError, match="no attribute 'wrte' .did you mean 'write'"):
        memcap.report.wrte
