"""Read a YAML mapping as people mean it: a key named twice is refused, and ``1e4`` is a number."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from memcap.errors import ConfigurationError


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader without its two surprises."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """A mapping whose keys are all different."""
        seen = set()
        for key_node, _ in node.value:
            key = key_node.value
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} is given twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
)


def read_yaml(path: Path) -> dict[Any, Any]:
    """The mapping in the file at ``path``.

    Raises:
        ConfigurationError: if the file is missing, not text, not YAML or not a mapping; with the line where possible.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} is not UTF-8 text: {error.reason} at byte {error.start}") from None
    try:
        found = yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f", line {mark.line + 1}" if mark is not None else ""
        raise ConfigurationError(f"{path}{line}: {error.problem or 'not YAML'}") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise ConfigurationError(f"{path} is not YAML: {error}") from None
    if not isinstance(found, dict):
        raise ConfigurationError(f"{path}: expected 'key: value' lines, got {type(found).__name__}")
    return found
