"""Philox 4x32-10, the counter-based generator behind token streams, in plain NumPy: the reference of the compiled form.

Four 32-bit words are a pure function of a 64-bit key and a 128-bit counter, so that any sample is regenerated on any
thread in any order.  Not here: what the words mean (``streams``), the compiled form (``token_kernels``).

Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011); checked against their known answers.
"""

from __future__ import annotations

import numpy as np

M0, M1 = 0xD2511F53, 0xCD9E8D57
W0, W1 = 0x9E3779B9, 0xBB67AE85
ROUNDS = 10
_LOW = 0xFFFFFFFF


def philox_plain(counter: np.ndarray, key: tuple[int, int]) -> np.ndarray:
    """The reference: four random words per counter.

    Args:
        counter: (n, 4) uint32.
        key: two 32-bit words.

    Returns:
        (n, 4) uint32.

    >>> [hex(word) for word in philox_plain(np.zeros((1, 4), np.uint32), (0, 0))[0]]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    c0, c1, c2, c3 = (counter[:, i].astype(np.uint64) for i in range(4))
    low, half = np.uint64(_LOW), np.uint64(32)
    for turn in range(ROUNDS):
        k0, k1 = np.uint64((key[0] + turn * W0) & _LOW), np.uint64((key[1] + turn * W1) & _LOW)
        first, second = np.uint64(M0) * c0, np.uint64(M1) * c2
        c0, c1, c2, c3 = (second >> half) ^ c1 ^ k0, second & low, (first >> half) ^ c3 ^ k1, first & low
    return np.stack([c0, c1, c2, c3], axis=1).astype(np.uint32)
