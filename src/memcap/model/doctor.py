"""Is floating-point arithmetic on this machine exact where memcap relies on it?

Every finding compares a float result with Python integers: sums and products that stay within 2^53 or 2^24 must come
out exactly, in a matrix product, in a softmax average over a power of two, and through a whole memory network.
"""

from __future__ import annotations

import platform
import sys
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from memcap.random import stream
from memcap.version import __version__

PACKAGES = ("torch", "numpy", "scipy", "numba", "pyarrow", "safetensors", "onnxruntime", "tokenizers", "distributed")
EXACT_BITS = {"float64": 53, "float32": 24}


@dataclass(frozen=True)
class Finding:
    """One comparison with the integer answer."""

    device: str
    dtype: str
    what: str
    exact: bool


@dataclass(frozen=True)
class Examination:
    """Versions, threads and findings; true when every finding is exact."""

    versions: dict[str, str]
    threads: dict[str, int]
    findings: tuple[Finding, ...]

    def __bool__(self) -> bool:
        return all(f.exact for f in self.findings)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "exact": bool(self)}


def examine() -> Examination:
    """Examine this process and every device torch can see."""
    import torch

    versions = {"memcap": __version__, "python": sys.version.split()[0], "platform": platform.platform()}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "not installed"
    threads = {"torch threads": torch.get_num_threads(), "torch interop threads": torch.get_num_interop_threads()}
    devices = ["cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]
    findings = []
    for device in devices:
        for name in EXACT_BITS:
            findings += _findings(device, name)
    return Examination(versions, threads, tuple(findings))


def _findings(device: str, name: str) -> list[Finding]:
    import torch

    from memcap.model.arithmetic import plain_arithmetic

    dtype = getattr(torch, name)
    top = EXACT_BITS[name]
    generator = stream(0, "doctor")
    left = generator.integers(-(2 ** (top // 2 - 4)), 2 ** (top // 2 - 4), size=(33, 64))
    right = generator.integers(-(2 ** (top // 2 - 3)), 2 ** (top // 2 - 3), size=(64, 17))
    wanted = left @ right
    with plain_arithmetic(device.split(":")[0]):
        product = torch.tensor(left, dtype=dtype, device=device) @ torch.tensor(right, dtype=dtype, device=device)
        findings = [
            Finding(device, name, "matrix product", bool((product.cpu().to(torch.int64).numpy() == wanted).all()))
        ]
        for length in (1, 2, 16, 128):
            values = generator.integers(0, 2 ** (top - 9), size=(5, length))
            weights = torch.softmax(torch.zeros(5, 1, length, dtype=dtype, device=device), dim=-1)
            scaled = torch.tensor(values * length, dtype=dtype, device=device)[:, :, None]
            mean = (weights @ scaled)[:, 0, 0].cpu().to(torch.int64).numpy()
            findings.append(
                Finding(device, name, f"softmax average of {length}", bool((mean == values.sum(axis=1)).all()))
            )
        edge = torch.tensor([2**top - 1, -(2**top) + 1], dtype=dtype, device=device)
        kept = [int(v) for v in torch.relu(edge).cpu().tolist()] == [2**top - 1, 0]
        findings.append(Finding(device, name, f"largest exact integer 2^{top} - 1", kept))
    findings.append(Finding(device, name, "a whole memory network", _network_agrees(device, name)))
    return findings


def _network_agrees(device: str, name: str) -> bool:
    import torch

    from memcap.data.sequences import SequenceData
    from memcap.exact.evaluate import evaluate
    from memcap.model.arithmetic import plain_arithmetic
    from memcap.model.build import build

    generator = stream(1, "doctor")
    keys = generator.choice(10**6, size=300, replace=False)
    memory = build(SequenceData.from_arrays(keys, generator.integers(0, 4, size=300)), weights=name)
    asked = generator.integers(0, int(keys.max()) + 1, size=500)
    module = memory.to_module().to(device)
    with plain_arithmetic(device.split(":")[0]), torch.no_grad():
        answer = module(torch.tensor(asked, device=device)).cpu().to(torch.int64).numpy()
    return bool((answer == evaluate(memory.network, asked)).all())
