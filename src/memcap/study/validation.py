"""pydantic's complaints, told as one sentence with the nearest valid name."""

from __future__ import annotations

from pydantic import BaseModel, ValidationError

from memcap.errors import nearest


def names_of(model: type[BaseModel]) -> list[str]:
    """The keys a file may use for ``model``: aliases where there are any."""
    return [field.alias or name for name, field in model.model_fields.items()]


def explain(error: ValidationError, model: type[BaseModel], where: str) -> str:
    """One message for everything that pydantic found, e.g. ``grid.yaml: no key 'axs' (did you mean 'axes'?)``."""
    valid = names_of(model)
    told = []
    for problem in error.errors():
        path = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden" and len(problem["loc"]) == 1:
            told.append(f"no key {path!r}{nearest(path, valid)}; keys: {', '.join(valid)}")
        elif problem["type"] == "missing":
            told.append(f"key {path!r} is missing")
        else:
            got = repr(problem.get("input"))
            got = got if len(got) <= 80 else got[:77] + "..."
            told.append(f"{path or 'value'}: {problem['msg'].removeprefix('Value error, ')}, got {got}")
    return f"{where}: " + "; ".join(told)
