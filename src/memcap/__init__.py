"""memcap: how much can a transformer memorise and recall, and what is the smallest one that does?

This file is the face of the package: every public name, imported on first use, so that ``import memcap`` is fast and
does not import torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from memcap.version import __version__

if TYPE_CHECKING:
    from memcap.data.readers import read_sequences as read_sequences
    from memcap.data.sequences import SequenceData as SequenceData
    from memcap.errors import MemcapError as MemcapError
    from memcap.exact.certificate import Certificate as Certificate
    from memcap.model.build import build as build
    from memcap.model.certify import certify as certify
    from memcap.model.certify import check as check
    from memcap.model.load import load as load
    from memcap.model.memory import Memory as Memory
    from memcap.model.recall import Recall as Recall
    from memcap.report.study_face import Study as Study
    from memcap.retrieval.critical import critical as critical
    from memcap.retrieval.prediction import Prediction as Prediction
    from memcap.retrieval.prediction import predict as predict
    from memcap.retrieval.run import Run as Run
    from memcap.retrieval.scaling import scaling as scaling
    from memcap.retrieval.simulate import simulate as simulate
    from memcap.retrieval.step_sizes import StepSizes as StepSizes
    from memcap.retrieval.task import RetrievalTask as RetrievalTask
    from memcap.retrieval.training import Training as Training

_HOMES = {
    "SequenceData": "memcap.data.sequences",
    "read_sequences": "memcap.data.readers",
    "MemcapError": "memcap.errors",
    "build": "memcap.model.build",
    "certify": "memcap.model.certify",
    "check": "memcap.model.certify",
    "load": "memcap.model.load",
    "Memory": "memcap.model.memory",
    "Recall": "memcap.model.recall",
    "Certificate": "memcap.exact.certificate",
    "RetrievalTask": "memcap.retrieval.task",
    "Training": "memcap.retrieval.training",
    "Run": "memcap.retrieval.run",
    "Prediction": "memcap.retrieval.prediction",
    "predict": "memcap.retrieval.prediction",
    "critical": "memcap.retrieval.critical",
    "scaling": "memcap.retrieval.scaling",
    "StepSizes": "memcap.retrieval.step_sizes",
    "simulate": "memcap.retrieval.simulate",
    "Study": "memcap.report.study_face",
    "report": "memcap.report",
}
"""Public name -> module that defines it.  A value equal to ``memcap.<name>`` is a public submodule."""

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        from memcap.errors import nearest

        raise AttributeError(f"module 'memcap' has no attribute {name!r}{nearest(name, _HOMES)}")
    module = importlib.import_module(home)
    value = module if home == f"memcap.{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
