"""Reading a memory folder back into a memory.  Nothing in the folder is executed."""

from __future__ import annotations

from os import PathLike

from memcap.model.files import read_folder
from memcap.model.header import Header
from memcap.model.memory import Memory


def load(path: str | PathLike[str], *, allow_changed: bool = False) -> Memory:
    """The memory that `Memory.save` wrote; it needs nothing but the folder.

    Args:
        path: a memory folder.
        allow_changed: load weights and facts that are not the ones that were saved, as ``memcap check`` does:
            `memcap.check` of the result says which layer, entry or fact differs.

    Raises:
        FormatError: if the folder is missing, truncated, of a newer version, inconsistent or its weights were changed;
            it names file and entry.
    """
    stored = read_folder(path)
    if not allow_changed:
        stored.require_intact()
    header = Header.from_json(stored.header, allow_changed=allow_changed)
    changed = allow_changed and not Header.unchanged(stored.header)
    return Memory(stored.network, header, stored.certificate, facts_changed=changed)
