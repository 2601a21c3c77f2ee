"""The seal of a stored certificate: a hash of everything else in it, and what can be said of a stored certificate.

Not what a certificate claims; that is in `memcap.exact.certificate`.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

INTACT, UNSEALED, CHANGED, MISSING = "intact", "unsealed", "changed", "missing"
"""States of a stored certificate: as written; of version 1, which no seal protects; changed since; there is none."""

STORED = {
    INTACT: "is the one that was written",
    UNSEALED: "is not sealed: an earlier memcap wrote it, and a change of its other figures would not show",
    CHANGED: "certificate was CHANGED: a field of certificate.json is not the one that was written",
    MISSING: "there is none",
}
"""State of a stored certificate -> the same in words."""
FACTS_CHANGED = "memory.json was CHANGED: labels, encoding or method are not the saved ones"


def seal_of(record: dict[str, Any]) -> str:
    """SHA-256 over ``record`` without its seal, in canonical JSON: keys sorted, no white space, UTF-8.

    It shows accidents and edits.  It is no signature: who rewrites a certificate can compute it anew.
    """
    rest = {name: value for name, value in record.items() if name != "seal"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
