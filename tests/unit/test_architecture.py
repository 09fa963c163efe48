"""Who may import whom, read from the source: see docs/architecture.md."""

from __future__ import annotations

import ast
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support import sizes

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "omnidemo").rglob("*.py"))
LAB = sorted((ROOT / "lab").rglob("*.py"))
# From the bottom up: a part imports from itself and from the layers below. A package is a folder of
# `omnidemo`; its folders that stand here are parts of their own, and the rest of it is one more.
ONE_EACH = """
core core/asset_files core/catalogue_file core/config core/answer_figures core/offers core/records
core/metrics core/processes core/resources core/shell_network core/private_folders core/tasks
vocabulary
decoding/sources decoding decoding/methods
backends
models/gguf models/fetching models models/adapters
storage
pair pair/remote pair/zerogpu
learning learning/distill learning/lines
serving serving/replicas
"""
LAYERS = [{part} for part in ONE_EACH.split()] + [{"api", "serving/measuring", "serving/endpoint"}]
LAYERS += [{"ui/figures"}, {"ui"}, {"cli"}, {"__main__"}]
HEIGHT = {part: height for height, layer in enumerate(LAYERS) for part in layer}


def files_in(folder: str) -> set[str]:
    return {
        path.relative_to(ROOT / "omnidemo").as_posix()
        for path in FILES
        if path.is_relative_to(ROOT / "omnidemo" / folder)
    }


STORE = (
    "store", "line_store", "tables", "csv_export", "database", "connections", "recordings", "postgres",
    "session_store",
)  # fmt: skip
TABLES = {f"storage/{name}.py" for name in STORE}
KERNELS = files_in("backends/kernels")
ONLY_IN = {
    "numba": KERNELS | {"backends/batched_pass.py", "backends/compile_kernels.py"},
    "omnidemo.backends.kernels": KERNELS | {"backends/batched_pass.py", "backends/compile_kernels.py"},
    "sqlalchemy": TABLES | files_in("storage/migrations"),
    "alembic": {"storage/database.py", "storage/connections.py"} | files_in("storage/migrations"),
    "peft": {"learning/distill/learner.py", "learning/distill/distiller.py"},
    "omnidemo.models.adapters.version_folders": {
        f"storage/{name}.py" for name in ("version_store", "line_versions", "backup")
    },
    "plotly": files_in("ui/figures") | {"ui/app.py"},
    "sklearn": {"learning/lines/router.py"},
    "gradio": files_in("ui"),
    "llguidance": {"models/answer_forms.py"},
    "markdown_it": {"ui/markdown_tree.py"},
    "pygments": {"ui/code_colours.py"},
    "mcp": {"serving/endpoint/mcp_server.py"},
    "ray": {"serving/replicas/ray_cluster.py", "serving/replicas/trainer.py"},
    "typer": {"__main__.py"} | files_in("cli"),
}
CLOCKS = {"time", "datetime", "timeit"}  # a clock is handed in
OUTSIDE = {
    "asyncio", "io", "multiprocessing", "os", "pathlib", "shutil", "socket", "sqlite3", "subprocess",
    "tempfile", "threading",
}  # fmt: skip
PURE = (sys.stdlib_module_names - OUTSIDE - CLOCKS) | {"numpy", "omnidemo"}


class Facts(NamedTuple):
    """Of a file. `imports`: every module that it imports, also for types alone, by its absolute name; `from x
    import y` counts as x and as x.y. `named`: those of `from x import y` alone. `texts`: its constants.
    `functions`: (name, lines) of each."""

    imports: set[str]
    named: set[str]
    texts: set[str]


@cache
def facts(path: Path) -> Facts:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = [*ast.walk(tree)]
    named = {one.module or "" for one in nodes if isinstance(one, ast.ImportFrom) and not one.level}
    texts = {one.value for one in nodes if isinstance(one, ast.Constant) and isinstance(one.value, str)}
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    return Facts(imported(nodes, package), named, texts)


def imports(path: Path) -> set[str]:
    return facts(path).imports


def imported(nodes: Iterable[ast.AST], package: tuple[str, ...]) -> set[str]:
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = (
                [*package[: len(package) - node.level + 1], node.module or ""]
                if node.level
                else [node.module or ""]
            )
            module = ".".join(part for part in base if part)
            found |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return found


def part_of(parts: Sequence[str]) -> str:
    """The part of a module by the parts of its name behind `omnidemo`."""
    inner = "/".join(parts[:2])
    return inner if inner in HEIGHT else parts[0]


def part(path: Path) -> str:
    return part_of(path.relative_to(ROOT / "omnidemo").with_suffix("").parts)


def test_imports_point_down() -> None:
    wrong = []
    for path in FILES:
        own = part(path)
        if own == "__init__":  # the lazy front door
            continue
        assert own in HEIGHT, f"{own} is a new part: give it a layer here and in docs/architecture.md"
        for name in imports(path):
            parts = name.split(".")
            other = part_of(parts[1:]) if parts[0] == "omnidemo" and len(parts) > 1 else ""
            if other in HEIGHT and other != own and HEIGHT[other] >= HEIGHT[own]:
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert not wrong


def test_nothing_that_an_app_needs_imports_the_laboratory() -> None:
    """`lab/` imports omnidemo, never the other way; nor does omnidemo start it as a process or import it by a
    name that is made up."""
    for path in (*FILES, ROOT / "app.py"):
        assert "lab" not in {name.split(".")[0] for name in imports(path)}, path
        assert not [one for one in facts(path).texts if f"{one}.".startswith("lab.")], path


def test_every_module_of_ours_that_is_named_exists() -> None:
    """Also what a command imports when it runs, which mypy takes for a library that is not installed."""
    missing = set()
    for path in [*FILES, *LAB]:
        for name in facts(path).named:
            place = ROOT.joinpath(*name.split("."))
            ours = name.split(".")[0] in ("omnidemo", "lab")
            if ours and not (place.with_suffix(".py").exists() or (place / "__init__.py").exists()):
                missing.add(f"{path.name}: {name}")
    assert not missing


def test_modules_of_the_backends_make_no_circle() -> None:
    """Nor for types alone."""
    own = {path.stem: path for path in FILES if part(path) == "backends" and "kernels" not in path.parts}
    left = {
        name: {part for one in imports(path) for part in one.split(".")[2:] if part in own} - {name}
        for name, path in own.items()
    }
    while free := [name for name, needs in left.items() if not needs & left.keys()]:
        for name in free:
            del left[name]
    assert not left


@pytest.mark.parametrize("library", ONLY_IN)
def test_a_library_stays_in_its_files(library: str) -> None:
    users = {
        path.relative_to(ROOT / "omnidemo").as_posix()
        for path in FILES
        if any(name == library or name.startswith(f"{library}.") for name in imports(path))
    }
    assert users, f"nothing imports {library} any more: take it out of the requirements and of this test"
    assert users <= ONLY_IN[library]


def test_no_module_name_stands_twice() -> None:
    names = Counter(path.stem for path in [*FILES, *LAB] if not path.stem.startswith("__"))
    assert not [name for name, count in names.items() if count > 1]


PURE_PARTS = ("vocabulary", "decoding/sources", "decoding", "decoding/methods")


def test_vocab_decoding_and_methods_are_numpy_and_the_standard_library_without_a_clock() -> None:
    for path in FILES:
        if part(path) in PURE_PARTS:
            assert {name.split(".")[0] for name in imports(path)} <= PURE, path


@pytest.mark.parametrize("package", sizes.allowed())
def test_no_wing_grows(package: str) -> None:
    lines, most = sizes.measured().get(package, 0), sizes.allowed()[package]
    assert lines <= most, (
        f"{package} has {lines:,} lines, and the table {most:,}: delete as many, or run `make sizes` in a"
        " commit that adds a feature and says by how much"
    )
    if lines < most:
        warnings.warn(
            f"{package} has {lines:,} lines, and the table {most:,}: `make sizes` lowers it", stacklevel=1
        )


def test_every_wing_is_in_the_table() -> None:
    assert set(sizes.measured()) <= set(sizes.allowed()), "`make sizes` writes them down"
