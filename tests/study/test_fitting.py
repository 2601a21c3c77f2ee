"""Fits over the cells of a study: from a grid to crossings, exponents over several axes, and compared laws."""

import math

import pytest

from memcap.errors import ConfigurationError, FitError
from memcap.study.study import Study

DIMENSIONS, LENGTHS = [1, 2, 4, 8], [1, 2, 4]
SAMPLES = {"from": 0.0625, "to": 1024.0, "per_octave": 1}
LAW = "samples ~ dimension^a * length^b"


def studied(**keys):
    study = Study.open(":memory:")
    axes = {"dimension": DIMENSIONS, "length": LENGTHS, "samples": SAMPLES, **keys.pop("axes", {})}
    study.run({"task": "study_toys:law", "axes": axes, **keys})
    return study


def test_several_axes_at_once():
    study = studied()
    lines = study.critical("samples", "recall")
    assert len(lines) == 12
    for line in lines:
        wanted = 8 * line.settings["dimension"] ** -1.5 * line.settings["length"] ** 2
        assert line.value == pytest.approx(wanted, rel=1e-6)
    fit = study.fit_exponent(LAW)
    assert (fit.names, fit.n_points, fit.n_censored) == (("dimension", "length"), 12, 0)
    assert fit.values == pytest.approx((-1.5, 2.0), abs=1e-6)
    assert fit.r_squared == pytest.approx(1.0)
    assert max(map(abs, fit.residuals)) < 1e-6
    part = study.fit_exponent("samples ~ dimension^a", where="length == 2")
    assert (part.n_points, part.values[0]) == (4, pytest.approx(-1.5, abs=1e-6))


def test_censored_lines_count_as_bounds():
    """Half of the plane crosses beyond the grid; bounds pull the exponents to where they are."""
    study = studied(axes={"samples": {"from": 0.25, "to": 16.0, "per_octave": 2}}, seeds=[0, 1, 2, 3])
    lines = study.critical("samples", "rough")
    assert {line.censored for line in lines} >= {None, "above"}
    for line in lines:
        wanted = 8 * line.settings["dimension"] ** -1.5 * line.settings["length"] ** 2
        if line.censored == "above":
            assert (line.value, line.high) == (16.0, math.inf)
            assert wanted > 16 * 0.7
    fit = study.fit_exponent(LAW, response="rough", confidence=0.999)
    assert fit.n_censored == sum(line.censored is not None for line in lines) > 0
    assert fit.n_points == 12
    assert fit.values == pytest.approx((-1.5, 2.0), abs=0.25)
    for low, high, true in zip(fit.lows, fit.highs, (-1.5, 2.0), strict=True):
        assert low < true < high


def test_laws_are_compared():
    study = studied(seeds=[0, 1, 2])
    laws = ["samples ~ dimension^a", LAW, "samples ~ dimension^-1 * length^b"]
    scores = study.compare(laws, response="rough")
    assert scores[0].law == LAW
    assert scores[0].weight > 0.99


def test_a_result_follows_a_law_and_what_the_law_leaves_out_is_scatter():
    study = studied(axes={"samples": [1.0, 2.0, 4.0], "width": [1, 2, 4]})
    fit = study.fit_exponent("cost ~ dimension^a * length^b * width^c")
    assert fit.values == pytest.approx((0.5, -1.0, 2.0), abs=1e-12)
    less = study.fit_exponent("cost ~ dimension^a")
    assert less.n_points == 4 * 3 * 3 * 3
    assert less.r_squared < 0.2


def test_settings_that_follow_from_others_do_not_tell_lines_apart():
    study = studied(axes={"length": [2]}, derived={"width": "2 * samples"})
    assert len(study.critical("samples", "recall")) == 4
    study = studied(axes={"length": [2]}, derived={"width": "3 * dimension"})
    with pytest.raises(FitError, match="dimension and width vary only together"):
        study.fit_exponent("samples ~ dimension^a * width^b")


def test_wrong_names_get_the_nearest():
    study = studied(axes={"length": [1]})
    for call, message in [
        (lambda: study.critical("sample", "recall"), "no setting 'sample'.*did you mean 'samples'"),
        (lambda: study.critical("samples", "recal"), "no column 'recal'.*did you mean 'recall'"),
        (lambda: study.fit_exponent("samples ~ dimensoin^a"), "'dimensoin' does not vary.*did you mean 'dimension'"),
        (lambda: study.fit_exponent("samples ~ dimension^a", risng=True), "no option 'risng'.*did you mean 'rising'"),
        (lambda: study.compare([LAW], scal="linear"), "no option 'scal'.*did you mean 'scale'"),
        (lambda: study.main_response("lwa"), "no task 'lwa' in this study.*did you mean 'law'"),
        (lambda: study.resume(worker=1), "resume takes no option 'worker'.*did you mean 'workers'"),
        (lambda: study.fit_exponent("samples ~ dimension^a", where="dimension > 99"), "no finished cell to fit"),
    ]:
        with pytest.raises((ConfigurationError, FitError), match=message):
            call()
