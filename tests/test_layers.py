"""A module imports only from rooms to its left (docs/decisions/0001-rooms.md); read from the source, nothing is run."""

import ast
from pathlib import Path

import memcap

ROOT = Path(memcap.__file__).parent
MAY_IMPORT = {
    "version": set(),
    "errors": set(),
    "random": {"errors"},
    "data": {"errors", "random", "version"},
    "exact": {"errors", "random", "version", "data"},
    "construct": {"errors", "random", "version", "data", "exact"},
    "retrieval": {"errors", "random", "version", "data"},
    "facts": {"errors", "random", "version", "data"},
    "model": {"errors", "random", "version", "data", "exact", "construct", "retrieval", "facts"},
    "capacity": {"errors", "random", "version", "data", "exact", "construct", "retrieval", "facts", "model"},
}
MAY_IMPORT["study"] = MAY_IMPORT["capacity"] | {"capacity"}
MAY_IMPORT["report"] = MAY_IMPORT["study"] | {"study"}
MAY_IMPORT["cli"] = MAY_IMPORT["report"] | {"report"}


def room_of(path: Path) -> str:
    relative = path.relative_to(ROOT)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def imported_rooms(source: str) -> set[str]:
    rooms = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here"
            base = node.module or ""
            names = [f"{base}.{alias.name}" for alias in node.names] if base == "memcap" else [base]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "memcap":
                rooms.add(parts[1] if len(parts) > 1 else "")
    return rooms


def violations(room: str, source: str) -> set[str]:
    return {other for other in imported_rooms(source) if other != room and other not in MAY_IMPORT[room]}


def test_no_module_imports_upwards():
    found = {}
    for path in ROOT.rglob("*.py"):
        room = room_of(path)
        if room == "__init__":
            continue
        assert room in MAY_IMPORT, f"{path}: a new room must be added to the order"
        bad = violations(room, path.read_text(encoding="utf-8"))
        if bad:
            found[str(path.relative_to(ROOT))] = bad
    assert not found


def test_the_check_itself_can_fail():
    assert violations("data", "from memcap.cli import main") == {"cli"}
    assert violations("exact", "import memcap.model.memory") == {"model"}
    assert violations("construct", "from memcap import build") == {"build"}
    assert violations("model", "from memcap.exact import certificate") == set()
