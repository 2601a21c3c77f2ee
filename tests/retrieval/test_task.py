"""The task: validation, identity, activations and step sizes."""

import copy
import dataclasses
import pickle
import re

import numpy as np
import pytest
import torch

import memcap
from memcap.errors import ConfigurationError
from memcap.retrieval.activation import activation
from memcap.retrieval.step_sizes import StepSizes, nominal_drive
from memcap.retrieval.task import RetrievalTask
from memcap.retrieval.training import Training

GOOD = {"vocabulary": 8, "length": 3, "samples": 20, "dimension": 5}

BAD = [
    ({"vocabulary": 1}, "vocabulary must be an integer in [2, 2147483648], got 1"),
    ({"vocabulary": True}, "vocabulary must be an integer in [2, 2147483648], got True"),
    ({"vocabulary": 8.0}, "vocabulary must be an integer in [2, 2147483648], got 8.0"),
    ({"length": 0}, "length must be an integer in [1, 2147483648], got 0"),
    ({"samples": 0}, f"samples must be an integer in [1, {2**62}], got 0"),
    ({"dimension": 0}, "dimension must be an integer in [1, 2147483648], got 0"),
    ({"width": -1}, "width must be an integer in [0, 2147483648], got -1"),
    ({"seed": -1}, f"seed must be an integer in [0, {2**63 - 1}], got -1"),
    ({"embeddings": "gausian"}, "embeddings must be one of gaussian, sphere, orthogonal, got 'gausian' (did you mean"),
    ({"attention": "sotf"}, "attention must be one of hard, soft, uniform, oracle, got 'sotf' (did you mean 'soft'?)"),
    ({"data": "populaton"}, "data must be one of empirical, population, got 'populaton' (did you mean 'population'?)"),
    ({"frequencies": "zip"}, "frequencies must be one of uniform, zipf, got 'zip' (did you mean 'zipf'?)"),
    ({"frequencies": -1.0}, "frequencies (a Zipf exponent, 'uniform' or 'zipf') must be a finite number in [0, 10]"),
    ({"frequencies": float("nan")}, "must be a finite number in [0, 10], got nan"),
    ({"label_noise": float("nan")}, "label_noise must be a finite number in [0, 1], got nan"),
    ({"label_noise": 1}, "label_noise must be below 1, got 1.0: no training label would carry information"),
    ({"activation": "rellu"}, "got 'rellu' (did you mean 'relu'?)"),
    ({"activation": "h9"}, "a sum of Hermite polynomials h0 … h6 such as 'h1+h2' or '0.5*h1-2*h3', got 'h9'"),
    ({"activation": "h1+"}, "got 'h1+'"),
    ({"activation": "h1h2"}, "got 'h1h2'"),
    ({"activation": "0*h1"}, "got '0*h1'"),
    ({"activation": ""}, "got ''"),
    ({"activation": 3}, "activation must be a name, got 3"),
    ({"trigger_in_value": "yes"}, "trigger_in_value must be True or False, got 'yes'"),
    (
        {"embeddings": "orthogonal", "dimension": 8},
        "orthogonal embeddings need dimension >= vocabulary + 1 = 9 (the trigger needs a direction of its own), got "
        "dimension = 8",
    ),
    ({"learning_rte": 1}, "RetrievalTask has no field 'learning_rte'; fields: vocabulary, length"),
    ({"lenght": 1}, "RetrievalTask has no field 'lenght' (did you mean 'length'?)"),
]


@pytest.mark.parametrize(("fields", "message"), BAD, ids=lambda value: str(value)[:40])
def test_bad_fields_are_one_clear_message(fields, message):
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        RetrievalTask(**{**GOOD, **fields})
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        RetrievalTask.from_dict({**GOOD, **fields})


def test_missing_and_positional_fields():
    with pytest.raises(ConfigurationError, match="RetrievalTask needs samples, dimension$"):
        RetrievalTask(vocabulary=8, length=3)
    with pytest.raises(ConfigurationError, match="takes its fields by name only"):
        RetrievalTask(8, 3, 20, 5)


OTHER = {
    "vocabulary": 9,
    "length": 4,
    "samples": 21,
    "dimension": 6,
    "width": 7,
    "activation": "tanh",
    "embeddings": "sphere",
    "trigger_in_value": True,
    "frequencies": 0.5,
    "facts": 2,
    "label_noise": 0.1,
    "attention": "soft",
    "data": "population",
    "seed": 1,
}


def test_every_field_is_part_of_the_identity():
    task = RetrievalTask(**GOOD)
    names = [field.name for field in dataclasses.fields(RetrievalTask)]
    assert set(OTHER) == set(names)  # a new field must be listed here
    identities = {task.identity} | {task.replace(**{name: OTHER[name]}).identity for name in names}
    assert len(identities) == len(names) + 1


def test_equal_tasks_share_an_identity_however_they_are_written():
    task = RetrievalTask(**GOOD, frequencies="zipf")
    for same in (
        RetrievalTask(**GOOD, frequencies=1),
        RetrievalTask(**{**GOOD, "vocabulary": np.int64(8)}, frequencies=1.0, width=0),
        RetrievalTask.from_dict(task.to_dict()),
        pickle.loads(pickle.dumps(task)),
        copy.deepcopy(task),
    ):
        assert same == task
        assert same.identity == task.identity
    assert RetrievalTask(**GOOD, frequencies=0.0).frequencies == "uniform"
    assert task.token_probabilities().sum() == pytest.approx(1, abs=1e-15)
    assert task.token_probabilities()[0] == pytest.approx(8 * task.token_probabilities()[7])


@pytest.mark.parametrize("name", ["relu", "gelu", "tanh", "he2", "h1+h2", "0.5*h0-2*h3+h6", "-h1", ".5*h4", "1e-2*h5"])
def test_activation_values_and_slopes_agree_in_numpy_torch_and_autograd(name):
    function = activation(name)
    x = np.linspace(-3, 3, 31) + 0.01
    tensor = torch.tensor(x, requires_grad=True)
    value = function.value(tensor)
    (slope,) = torch.autograd.grad(value.sum(), tensor)
    np.testing.assert_allclose(value.detach().numpy(), function.value(x), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(slope.numpy(), function.slope(x), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(function.slope(tensor.detach()).numpy(), function.slope(x), rtol=1e-13, atol=1e-13)


def test_hermite_polynomials_are_orthonormal():
    nodes, weights = np.polynomial.hermite_e.hermegauss(20)
    weights = weights / weights.sum()
    table = np.array([activation(f"h{k}").value(nodes) for k in range(7)])
    np.testing.assert_allclose((table * weights) @ table.T, np.eye(7), atol=1e-12)
    gelu = activation("gelu").value(torch.tensor([0.3, -1.2], dtype=torch.float64))
    np.testing.assert_allclose(gelu, torch.nn.functional.gelu(torch.tensor([0.3, -1.2], dtype=torch.float64)))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"first": -1.0}, "step size 'first' must be a finite number in [0, 1e+30], got -1.0"),
        ({"first": 0}, "step size 'first' must be positive, got 0"),
        ({"first": float("nan")}, "step size 'first' must be a finite number"),
        ({"first": 1.0, "second": float("inf")}, "step size 'second' must be a finite number"),
        ({"sharpness": None}, "step size 'sharpness' must be a finite number"),
        ({"attention": 1.0}, "step sizes 'attention' and 'second' need 'first'"),
        ({"frist": 1.0}, "StepSizes has no field 'frist' (did you mean 'first'?)"),
    ],
)
def test_bad_step_sizes(fields, message):
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        StepSizes(**fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"optimiser": "adamw"}, "optimiser must be one of gd, sgd, adam, got 'adamw' (did you mean 'adam'?)"),
        ({"learning_rte": 1.0}, "Training has no field 'learning_rte' (did you mean 'learning_rate'?)"),
        ({"learning_rate": -1.0}, "learning_rate must be a finite number in [0, 1e+09], got -1.0"),
        ({"learning_rate": 0.0}, "learning_rate must be positive, got 0"),
        ({"steps": 0}, "steps must be an integer in [1, 1000000000], got 0"),
        ({"heads": 0}, "heads must be an integer in [1, 1024], got 0"),
        ({"batch": 5}, "optimiser 'gd' takes the full batch; use 'sgd' with batch=..."),
        ({"until_loss": float("nan")}, "until_loss must be a finite number"),
        ({"head_spread": -1.0}, "head_spread must be a finite number"),
    ],
)
def test_bad_training(fields, message):
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        Training(**fields)


def test_positional_settings_are_refused():
    with pytest.raises(ConfigurationError, match="StepSizes takes its fields by name only"):
        StepSizes(1.0)
    with pytest.raises(ConfigurationError, match="Training takes its fields by name only"):
        Training("adam")


def test_nominal_drive_is_the_formula_and_shrinks_with_noise():
    task = RetrievalTask(**GOOD)
    assert nominal_drive(task) == pytest.approx((1 - 1 / 3) / (9 * 8), rel=1e-14)
    assert nominal_drive(task.replace(label_noise=0.5)) == pytest.approx(nominal_drive(task) / 4, rel=1e-14)
    assert nominal_drive(task.replace(frequencies=1e-9)) == pytest.approx(nominal_drive(task), rel=1e-6)


def test_public_names():
    for name in ("RetrievalTask", "simulate", "Run", "StepSizes", "Training"):
        assert getattr(memcap, name).__name__ == name
