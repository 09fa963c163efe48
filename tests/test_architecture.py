"""Who may import whom, read from the source: see ARCHITECTURE.md."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / "omnidemo").rglob("*.py"))
# From the bottom up: a room imports from its own floor's rooms of the same name and from every floor below.
FLOORS = [{"config", "records", "charts"}, {"core"}, {"decoding"}, {"methods"}, {"runtime"}, {"api", "bench", "bundled"}, {"ui"}]
FLOORS += [{"commands"}, {"__main__"}]
HEIGHT = {room: height for height, floor in enumerate(FLOORS) for room in floor}
RUNTIME = {f"runtime/{name}.py" for name in ("store", "tables", "export", "database", "backup", "pruning", "recordings", "learned")}
VERSIONS = ("0001_first", "0002_head", "0003_recordings", "0004_learning")
MIGRATIONS = {"runtime/migrations/env.py", *(f"runtime/migrations/versions/{name}.py" for name in VERSIONS)}
COMPILED = {path.relative_to(ROOT / "omnidemo").as_posix() for path in FILES if path.parent.name == "compiled"}
ONLY_IN = {
    "numba": COMPILED | {"runtime/compiling.py"},
    "omnidemo.runtime.compiled": COMPILED | {"runtime/compiling.py"},
    "sqlalchemy": RUNTIME | MIGRATIONS,
    "alembic": {"runtime/database.py"} | MIGRATIONS,
    "peft": {"runtime/training.py", "runtime/distiller.py", "runtime/adapters.py"},
    "plotly": {"charts.py"},
    "sklearn": {"runtime/router.py"},
    "gradio": {path.relative_to(ROOT / "omnidemo").as_posix() for path in FILES if path.parent.name == "ui"},
    "typer": {"__main__.py", *(f"commands/{name}.py" for name in ("check", "common", "measure", "speed", "torture"))}
    | {f"bundled/{name}.py" for name in ("train", "evaluate", "conversations")},
}
CLOCKS = {"time", "datetime", "timeit"}  # a clock is handed in
OUTSIDE = {"asyncio", "io", "multiprocessing", "os", "pathlib", "shutil", "socket", "sqlite3", "subprocess", "tempfile", "threading"}
PURE = (sys.stdlib_module_names - OUTSIDE - CLOCKS) | {"torch", "numpy", "omnidemo"}


def imports(path: Path) -> set[str]:
    """Every module that a file imports, also for types alone, by its absolute name; `from x import y` counts as x and as x.y."""
    return imported(path.read_text(encoding="utf-8"), path.relative_to(ROOT).with_suffix("").parts[:-1])


def imported(source: str, package: tuple[str, ...]) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = [*package[: len(package) - node.level + 1], node.module or ""] if node.level else [node.module or ""]
            module = ".".join(part for part in base if part)
            found |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return found


def room(path: Path) -> str:
    return path.relative_to(ROOT / "omnidemo").with_suffix("").parts[0]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_imports_point_down(path: Path) -> None:
    own = room(path)
    if own == "__init__":  # the lazy front door
        return
    assert own in HEIGHT, f"{own} is a new room: give it a floor here and in ARCHITECTURE.md"
    for name in imports(path):
        parts = name.split(".")
        if parts[0] == "omnidemo" and len(parts) > 1 and parts[1] in HEIGHT:
            assert parts[1] == own or HEIGHT[parts[1]] < HEIGHT[own], f"{own} imports {name}"


@pytest.mark.parametrize("library", ONLY_IN)
def test_a_library_stays_in_its_files(library: str) -> None:
    users = {
        path.relative_to(ROOT / "omnidemo").as_posix()
        for path in FILES
        if any(name == library or name.startswith(f"{library}.") for name in imports(path))
    }
    assert users, f"nothing imports {library} any more: take it out of the requirements and of this test"
    assert users <= ONLY_IN[library]


def test_what_is_imported_for_types_alone_counts() -> None:
    source = "if TYPE_CHECKING:\n  from omnidemo.runtime.lean import LeanCache\ndef f():\n  from .knowledge import Knowledge\n  import time"
    names = {"omnidemo.runtime.lean", "omnidemo.runtime.lean.LeanCache", "omnidemo.core.knowledge", "omnidemo.core.knowledge.Knowledge"}
    assert imported(source, ("omnidemo", "core")) == names | {"time"}


@pytest.mark.parametrize("path", [path for path in FILES if room(path) in ("core", "decoding", "methods")], ids=lambda path: path.stem)
def test_core_decoding_and_methods_are_torch_and_the_standard_library_without_a_clock(path: Path) -> None:
    assert {name.split(".")[0] for name in imports(path)} <= PURE
