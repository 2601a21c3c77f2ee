"""The tidy table and its files."""

import csv
import json
import math

import numpy as np
import pyarrow.parquet as pq
import pytest

from memcap.errors import ConfigurationError, RunError
from memcap.study.study import Study


@pytest.fixture(scope="module")
def study():
    study = Study.open(":memory:")
    study.run({"task": "study_toys:some_bad", "axes": {"x": [1, 3, 4]}, "fixed": {"mode": "raise"}, "seeds": [0, 1]})
    study.run({"task": "study_toys:plain", "axes": {"x": [7]}})
    return study


def test_columns_come_in_the_promised_order(study):
    names = list(study.frame().columns)
    assert names[:2] == ["identity", "task"]
    assert set(names[2:7]) == {"log", "mode", "sleep", "x", "y"}
    assert names[7:9] == ["seed", "state"]
    assert names[9:16] == ["recall", "noise", "snr.signal", "snr.bad", "snr.top", "curve", "count"]
    assert names[-3:] == ["versions", "error_type", "error"]


def test_kinds_are_kept_and_missing_is_missing(study):
    frame = study.frame()
    assert len(frame) == 7
    assert str(frame["count"].dtype) == "Int64"
    assert frame["count"].isna().sum() == 3  # two failed, one of another task
    assert frame["recall"].dtype == np.float64
    assert str(frame["attempts"].dtype) == "int64"
    assert frame["error"].iloc[2] == "the toy was told to fail"
    assert np.isinf(frame["snr.top"].iloc[0])


def test_filters(study):
    assert list(study.frame(where="x > 2 and recall > 0.5")["x"]) == [4.0, 4.0]
    assert list(study.frame(where="state == 'failed'")["seed"]) == [0, 1]
    assert list(study.frame(states=["done"], where="square > 1")["square"]) == [49]
    assert len(study.frame(where="x > 99")) == 0
    with pytest.raises(ConfigurationError, match="where: no column 'recal'.*did you mean 'recall'"):
        study.frame(where="recal > 1")
    with pytest.raises(ConfigurationError, match="is not allowed"):
        study.frame(where="x.y")


def test_files_hold_every_value(study, tmp_path):
    for ending in ("parquet", "csv", "jsonl"):
        assert study.export(tmp_path / f"t.{ending}") == 7
    assert sorted(p.name for p in tmp_path.iterdir()) == ["t.csv", "t.jsonl", "t.parquet"]
    table = pq.read_table(tmp_path / "t.parquet").to_pydict()
    assert table["count"][0] == 2**60 + 1
    assert table["count"][2] is None
    assert math.isnan(table["snr.bad"][0])
    assert table["snr.bad"][2] is None
    assert table["curve"][0] == [0.0, -math.inf, 1.0]
    with (tmp_path / "t.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert (rows[0]["snr.bad"], rows[0]["snr.top"], rows[2]["snr.bad"]) == ("NaN", "Infinity", "")
    assert rows[0]["count"] == str(2**60 + 1)
    assert float(rows[0]["noise"]) == table["noise"][0]
    lines = (tmp_path / "t.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line, parse_constant=pytest.fail) for line in lines]
    assert records[0]["snr.bad"] == "NaN"
    assert records[0]["curve"] == [0.0, "-Infinity", 1.0]
    assert "snr.bad" not in records[2]


def test_an_export_fails_whole(study, tmp_path):
    with pytest.raises(
        ConfigurationError, match=r"export writes \.parquet, \.csv, \.jsonl, not '\.parqet'.*did you mean"
    ):
        study.export(tmp_path / "t.parqet")
    with pytest.raises(ConfigurationError, match=r"t\.csv: the folder does not exist; create .*absent first"):
        study.export(tmp_path / "absent" / "t.csv")
    (tmp_path / "t.csv").mkdir()
    with pytest.raises(RunError, match="cannot write"):
        study.export(tmp_path / "t.csv")
    assert list(tmp_path.iterdir()) == [tmp_path / "t.csv"]


def test_an_empty_study_is_an_empty_table(tmp_path):
    study = Study.open(":memory:")
    assert len(study.frame()) == 0
    assert study.export(tmp_path / "t.parquet") == study.export(tmp_path / "t.csv") == 0


def test_mixed_and_huge_values_stay_exact(tmp_path):
    from memcap.study.table import frame_of

    columns = {"big": [2**70, 1], "mixed": [1, "a"], "flag": [True, None], "number": [1, 0.5]}
    frame = frame_of(columns)
    assert list(frame["big"]) == [2**70, 1]
    assert str(frame["flag"].dtype) == "boolean"
    from memcap.study.export import write_table

    write_table(columns, tmp_path / "t.parquet")
    assert pq.read_table(tmp_path / "t.parquet").to_pydict()["big"] == [str(2**70), "1"]
