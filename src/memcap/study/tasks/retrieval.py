"""``simulate`` and ``predict`` as measurements: settings of a ``RetrievalTask`` in, recall and its parts out."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator

from memcap.retrieval.prediction import predict as predicted
from memcap.retrieval.run import Run
from memcap.retrieval.simulate import simulate as simulated
from memcap.retrieval.step_sizes import StepSizes
from memcap.retrieval.task import FORMAT, RetrievalTask
from memcap.study.measurements import Measurement

_HOW_IT_RAN = ("task", "settings", "threads", "seconds", "versions", "data_hash")


class _Checked(BaseModel):
    """Settings that make a ``RetrievalTask``; its own checks are the checks."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="after")
    def _is_a_task(self) -> _Checked:
        _task(self.model_dump())
        return self


def _task(settings: dict[str, Any]) -> RetrievalTask:
    return RetrievalTask(**{f.name: settings[f.name] for f in dataclasses.fields(RetrievalTask) if f.name in settings})


def _fields(*, without: tuple[str, ...] = ()) -> dict[str, Any]:
    """pydantic fields for every field of a task, so that a new one is a new setting without being named here."""
    hints = inspect.get_annotations(RetrievalTask, eval_str=True)
    return {
        f.name: (hints[f.name], ... if f.default is dataclasses.MISSING else f.default)
        for f in dataclasses.fields(RetrievalTask)
        if f.name not in without
    }


SimulateSettings: type[BaseModel] = create_model(
    "SimulateSettings",
    __base__=_Checked,
    **_fields(),
    steps=(int, Field(default=3, ge=1, le=3)),
    test_samples=(int, Field(default=8192, ge=1)),
    engine=(str, "auto"),
    first_step=(float | None, None),
    attention_step=(float | None, None),
    second_step=(float | None, None),
    sharpness=(float, 4.0),
    device=(str, "cpu"),
)

PredictSettings: type[BaseModel] = create_model("PredictSettings", __base__=_Checked, **_fields(without=("seed",)))


def _simulate(settings: dict[str, Any]) -> dict[str, Any]:
    sizes = StepSizes(
        first=settings["first_step"],
        attention=settings["attention_step"],
        second=settings["second_step"],
        sharpness=settings["sharpness"],
    )
    run = simulated(
        _task(settings),
        steps=settings["steps"],
        test_samples=settings["test_samples"],
        step_sizes=sizes,
        engine=settings["engine"],
        device=settings["device"],
    )
    results = {f.name: getattr(run, f.name) for f in dataclasses.fields(Run) if f.name not in _HOW_IT_RAN}
    return {**results, "data_hash": run.data_hash, "device": settings["device"]}


def _predict(settings: dict[str, Any]) -> dict[str, Any]:
    return predicted(_task(settings)).to_dict()


simulate = Measurement("simulate", SimulateSettings, _simulate, version=FORMAT, response="recall")
predict = Measurement("predict", PredictSettings, _predict, version=FORMAT, response="recall")
