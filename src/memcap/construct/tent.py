"""The tent-map hash: distinct integers in, pseudo-random bits out, at O(1) neurons per bit.

Two integer forms of ``u -> |2u - M|``.  *Fold form*: ``u <- |2u - M|`` on odd ``u`` in ``[0, M]``.  *Centred form*:
``p <- H - 2|p|`` on odd ``p`` in ``[-H, H]`` with ``p = H - 2 (mod 4)``.  Both are injective there for odd moduli, so
two keys never merge.  Primes only make orbits long: nothing about correctness rests on primality.
Only numbers live here, no neurons; the constructions write those.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Bool, Int

from memcap.errors import ConfigurationError

# Deterministic below 3.3e24 (Sorenson & Webster 2015); beyond that a strong probable prime serves as well here.
_WITNESSES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41)


LARGEST_KEY = 2**60
"""The fold form of keys below this stays within int64, whatever modulus is drawn."""


def is_prime(n: int) -> bool:
    """Miller-Rabin with the first 13 primes as witnesses: exact below 3.3e24, probable above.

    >>> [n for n in range(20) if is_prime(n)]
    [2, 3, 5, 7, 11, 13, 17, 19]
    """
    if n < 2:
        return False
    for p in _WITNESSES:
        if n % p == 0:
            return n == p
    twos = ((n - 1) & -(n - 1)).bit_length() - 1
    odd = (n - 1) >> twos
    for a in _WITNESSES:
        x = pow(a, odd, n)
        if x in (1, n - 1):
            continue
        for _ in range(twos - 1):
            x = x * x % n
            if x == n - 1:
                break
        else:
            return False
    return True


def orbit_is_long(modulus: int, rounds: int) -> bool:
    """Whether the first ``rounds`` powers of 2 differ modulo ``modulus`` up to sign (else hash bits repeat)."""
    seen: set[int] = set()
    power = 1 % modulus
    for _ in range(rounds):
        key = min(power, modulus - power)
        if key in seen:
            return False
        seen.add(key)
        power = power * 2 % modulus
    return True


def choose_prime(at_least: int, *, rounds: int, skip: int = 0, residue: int | None = None) -> int:
    """The ``skip``-th (from 0) odd prime ``>= at_least`` whose doubling orbit is longer than ``rounds``.

    Args:
        at_least: smallest value allowed; primes too small to have an orbit that long are passed over.
        rounds: tent rounds that must not repeat.
        skip: how many admissible primes to pass over; a seed's number goes here.
        residue: if given, the prime must be ``residue`` modulo 4 (1 or 3).

    >>> choose_prime(100, rounds=10)
    101
    """
    if rounds < 0 or skip < 0 or residue not in (None, 1, 3):
        raise ConfigurationError(f"a prime cannot be chosen for rounds={rounds}, skip={skip}, residue={residue}")
    n = max(at_least, 3) | 1
    while True:
        if (residue is None or n % 4 == residue) and is_prime(n) and orbit_is_long(n, rounds):
            if skip == 0:
                return n
            skip -= 1
        n += 2


def quick_warmup(chunks: int) -> int:
    """Warm-up rounds that suffice for spread-out keys in ``chunks`` runs of neighbours: ``ceil(log2 chunks) + 6``."""
    return math.ceil(math.log2(max(chunks, 1))) + 6


def safe_warmup(sorted_keys: Int[np.ndarray, " items"], window: int) -> int:
    """Warm-up rounds that suffice for any keys: enough to spread ``window`` neighbouring keys over the whole range.

    ``ceil(log2((largest + 1) / median span of window consecutive keys)) + 8``; the first rounds of the tent are
    constant on a run of neighbours, and a run of span s needs about log2(range / s) rounds before it is folded.
    """
    count = len(sorted_keys)
    if count == 0:
        return 8
    window = max(1, min(window, count - 1))
    if count == 1:
        return 8
    spans = sorted_keys[window:] - sorted_keys[:-window]
    median = max(1, int(np.median(spans)))
    return math.ceil(math.log2(max(1.0, (int(sorted_keys[-1]) + 1) / median))) + 8


def fold_step(u: Int[np.ndarray, "..."], modulus: int) -> Int[np.ndarray, "..."]:
    """One round of the fold form, ``|2u - M|``; the hash bit ``2u < M`` is the parity of ``max(M - 2u, 0)``."""
    stepped: np.ndarray = np.abs(2 * u - modulus)
    return stepped


def centred_step(p: Int[np.ndarray, "..."], modulus: int) -> Int[np.ndarray, "..."]:
    """One round of the centred form, ``H - 2|p|``; the hash bit is ``p > 0``."""
    stepped: np.ndarray = modulus - 2 * np.abs(p)
    return stepped


def centred_offset(largest: int, modulus: int) -> int:
    """The constant ``c0`` of ``p_0 = 4 q + c0`` that centres ``0 <= q <= largest`` in the invariant set of ``modulus``.

    Raises:
        ConfigurationError: if ``modulus < 2 largest + 5`` (|p_0| could leave the range).
    """
    if modulus < 2 * largest + 5:
        raise ConfigurationError(f"modulus {modulus} is too small for keys up to {largest}: {2 * largest + 5} or more")
    low = -2 * largest
    return low - (low - (modulus - 2)) % 4


def centred_bits(p: Int[np.ndarray, " items"], modulus: int, rounds: int) -> Bool[np.ndarray, "rounds items"]:
    """The bits ``p_t > 0`` of ``rounds`` successive states, the given one first.

    >>> centred_bits(np.array([3, -5]), 13, 3).astype(int).tolist()
    [[1, 0], [1, 1], [0, 1]]
    """
    bits = np.empty((rounds, len(p)), dtype=bool)
    for t in range(rounds):
        np.greater(p, 0, out=bits[t])
        p = centred_step(p, modulus)
    return bits
