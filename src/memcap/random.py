"""Counter-based random streams: the same numbers on every machine, device and number of workers.

A stream is named by ``(seed, purpose, index...)``.  Different names give independent streams; global random state is
never read or written.
"""

from __future__ import annotations

import hashlib

import numpy as np

from memcap.errors import ConfigurationError


def stream_key(seed: int, purpose: str) -> int:
    """A 128-bit key for counter-based generators, from SHA-256 of ``seed`` and ``purpose``.

    Raises:
        ConfigurationError: if ``seed`` is not an integer in [0, 2^63).
    """
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= int(seed) < 2**63:
        raise ConfigurationError(f"seed must be an integer in [0, 2^63), got {seed!r}")
    digest = hashlib.sha256(f"memcap:{int(seed)}:{purpose}".encode()).digest()
    return int.from_bytes(digest[:16], "little")


def stream(seed: int, purpose: str, *index: int) -> np.random.Generator:
    """An independent generator for ``(seed, purpose, index...)``; at most three indices, each in [0, 2^63).

    >>> bool((stream(0, "words").integers(9, size=4) == stream(0, "words").integers(9, size=4)).all())
    True
    """
    if len(index) > 3 or any(i < 0 or i >= 2**63 for i in index):
        raise ConfigurationError(f"a stream takes at most three indices in [0, 2^63), got {index!r}")
    counter = [0, *index, *([0] * (3 - len(index)))]  # word 0 runs; the others name the stream
    bits = np.random.Philox(key=stream_key(seed, purpose), counter=counter)
    return np.random.Generator(bits)
