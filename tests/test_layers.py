"""Imports point downwards only, and `import mlestruct` loads no solver, compiler or plotter."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from mlestruct.lazy import homes

ROOT = Path(__file__).resolve().parents[1]

# Bottom to top. A module may import from the lines above its own, and from its own folder.
# Modules on one line do not know each other.
LAYERS = [
    ["native"],
    ["errors", "storage"],
    ["limits"],
    ["lazy"],
    ["engine", "structures"],
    ["plot"],
    ["progress", "results"],
    ["features"],
    ["oracle"],
    ["learning"],
    ["inference"],
    ["statistics"],
    ["learning.problem"],
    ["learning.tied"],
    ["learning.minimise"],
    ["learners"],
    ["testing", "data", "tables", "metrics", "readers"],
    ["estimators", "scorers"],
    ["families"],
    ["roommates"],
    ["cli"],
    ["__main__"],
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}

# All that the solvers may know of the library.
ORACLES_MAY_IMPORT = {"native", "errors", "structures", "oracle"}

# The one module that names the solvers, as text for importlib, when one is asked for.
REGISTRY = "mlestruct/oracle/registry.py"
BUILD = "mlestruct/native/build.py"  # compiles the solvers' kernels too

# (file, imported module): why it may point upwards. An entry nothing needs fails.
EXCEPTIONS: dict[tuple[str, str], str] = {
    ("mlestruct/cli.py", "mlestruct.__version__"): "--version says what is installed",
}

HOMES = homes("mlestruct")  # the module of every public name; "mlestruct" of a public module

# Modules of which the names are public: those that the package shows, and two for everybody.
PUBLIC = {f"mlestruct.{name}" for name, home in HOMES.items() if home == "mlestruct"}
PUBLIC |= {"mlestruct.errors", "mlestruct.progress"}

# What the application and the families import that is not public yet. The list may only shrink.
NOT_PUBLIC = ROOT / "tests" / "not_public.txt"  # lines "package module name"
MOST_NOT_PUBLIC = 87  # names in the list

LAZY = ["scipy.optimize", "ortools", "maxflow", "networkx", "matplotlib", "sklearn"]


def sources(folder: str) -> list[Path]:
    made = ("_door.py", "_cffi.py")  # by the build, from headers
    return sorted(path for path in (ROOT / folder).rglob("*.py") if path.name not in made)


def name_of(path: Path) -> str:
    """oracles/mlestruct_oracles/a.py is mlestruct_oracles.a; a package is its folder."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts[1:] if parts[0] == "oracles" else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Every (line, absolute module) imported anywhere in the file, in functions too.

    A package may show type checkers a name that it imports lazily.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    if path.stem == "__init__":
        tree.body = [node for node in tree.body if not for_type_checkers(node)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = (*name_of(path).split("."), *(["_"] if path.stem == "__init__" else []))
                base = ".".join(filter(None, (*parts[: -node.level], node.module)))
            # `from mlestruct import batch` is a module; `from mlestruct import Batch` is a name of
            # one, and so is `from mlestruct.structures.batch import Batch`.
            for alias in node.names:
                home = HOMES.get(alias.name, "mlestruct") if base == "mlestruct" else base
                yield node.lineno, f"{home}.{alias.name}" if home == "mlestruct" else home


def for_type_checkers(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"


def layer(module: str) -> str | None:
    """The part of the library a module belongs to, None outside of it; "" is mlestruct itself."""
    package, *parts = module.split(".")
    named = ".".join(parts[:2])
    return None if package != "mlestruct" else named if named in LEVEL else "".join(parts[:1])


def objection(path: Path, target: str) -> str | None:
    """Why this file may not import this module, or None."""
    here = name_of(path)
    imported = layer(target)
    if here.startswith("mlestruct_oracles"):
        if imported is not None and imported not in ORACLES_MAY_IMPORT:
            return f"solvers import only {', '.join(sorted(ORACLES_MAY_IMPORT))}"
        return None
    if target.split(".")[0] == "mlestruct_oracles":
        return f"solvers are loaded by name, by the registry in {REGISTRY}"
    if here == "mlestruct" or imported is None:
        return None
    own = layer(here) or ""
    if own == imported == "families" and here.split(".")[2:3] != target.split(".")[2:3]:
        return "families do not know each other"
    if own == imported:
        return None
    if imported not in LEVEL:
        return f"{imported or 'mlestruct itself'} is no layer of tests/test_layers.py"
    if LEVEL[imported] >= LEVEL[own]:
        return f"{imported} is not below {own}"
    return None


def test_every_module_has_its_layer() -> None:
    names = {layer(name_of(path)) for path in sources("mlestruct")} - {"", None}
    unknown = sorted(name for name in names if name not in LEVEL)
    assert not unknown, f"give {unknown} a place in LAYERS"


def test_imports_point_downwards() -> None:
    wrong, used = [], set()
    for path in [*sources("mlestruct"), *sources("oracles")]:
        file = path.relative_to(ROOT).as_posix()
        for line, target in imports(path):
            reason = objection(path, target)
            if reason and (file, target) in EXCEPTIONS:
                used.add((file, target))
            elif reason:
                wrong.append(f"{file}:{line} imports {target}: {reason}")
    assert not wrong, "imports that do not point downwards:\n  " + "\n  ".join(wrong)
    assert set(EXCEPTIONS) == used, f"exceptions nothing needs: {sorted(set(EXCEPTIONS) - used)}"


def not_public(folder: str) -> set[str]:
    """Lines "package module name" of what a package imports from outside and is not public."""
    found = set()
    for path in sources(f"mlestruct/{folder}"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            foreign = [name for name in modules if name.partition(".")[0] == "mlestruct"]
            assert not foreign, f"{path}: import names of {foreign}"
            module = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
            own = module.startswith(f"mlestruct.{folder}")
            if module.partition(".")[0] == "mlestruct" and not own:
                names = {alias.name for alias in node.names if not is_public(module, alias.name)}
                found |= {f"{folder} {module} {name}" for name in names}
    return found


def is_public(module: str, name: str) -> bool:
    """Whether the package shows a name: itself, or in a module that it shows."""
    if module == "mlestruct":
        return name in HOMES
    shown = import_module(module) if module in PUBLIC else None
    return shown is not None and name in getattr(shown, "__all__", dir(shown))


def test_users_of_the_library_import_public_names() -> None:
    listed = NOT_PUBLIC.read_text(encoding="utf-8").split("\n")
    assert sorted(not_public("roommates") | not_public("families")) == listed[:-1]


def test_the_list_of_names_that_are_not_public_only_shrinks() -> None:
    names = NOT_PUBLIC.read_text(encoding="utf-8").splitlines()
    assert len(names) == MOST_NOT_PUBLIC, "lower the limit with the list"


def test_only_the_registry_names_the_solvers() -> None:
    """A module loaded by name is an import too, so its name stands in one file."""
    wrong = []
    for path in sources("mlestruct"):
        file = path.relative_to(ROOT).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            text = node.value if isinstance(node, ast.Constant) else None
            is_name = isinstance(text, str) and text.startswith("mlestruct_oracles")
            if is_name and file not in (REGISTRY, BUILD):
                wrong.append(f"{file}:{node.lineno} names {text}")
    assert not wrong, f"only {REGISTRY} may name a solver's module:\n  " + "\n  ".join(wrong)


def test_the_library_imports_no_solver_package() -> None:
    files = {
        path
        for path in sources("mlestruct")
        for _, target in imports(path)
        if target.partition(".")[0] in {"ortools", "maxflow"}
    }
    assert not files, f"solver packages are imported by mlestruct_oracles: {sorted(files)}"


def test_pymaxflow_has_one_importer() -> None:
    """What LICENSE and README say: GPL code is imported inside its adapter only."""
    files = {
        path
        for path in sources("oracles")
        for _, target in imports(path)
        if target.partition(".")[0] == "maxflow"
    }
    assert len(files) <= 1, f"PyMaxflow is imported in more than one file: {sorted(files)}"


@pytest.mark.parametrize(
    ("file", "target", "allowed"),
    [
        ("mlestruct/learning/dual.py", "mlestruct.structures.entropy", True),
        ("mlestruct/learning/dual.py", "mlestruct.inference.proof", False),
        ("mlestruct/learning/dual.py", "mlestruct.Custom", False),
        ("mlestruct/learning/dual.py", "mlestruct_oracles.assignment", False),
        ("mlestruct/structures/graph.py", "mlestruct.structures.matching", True),
        ("mlestruct/data/examples.py", "mlestruct.testing", False),
        ("mlestruct/estimators/base.py", "mlestruct.roommates.model", False),
        ("mlestruct/families/joint/model.py", "mlestruct.roommates.model", False),
        ("mlestruct/cli.py", "mlestruct.roommates.commands", True),
        ("mlestruct/__init__.py", "mlestruct.estimators", True),
        ("mlestruct/learners/convex.py", "mlestruct.families.joint.prediction", False),
        ("mlestruct/families/joint/model.py", "mlestruct.families.joint.prediction", True),
        ("mlestruct/families/joint/model.py", "mlestruct.families.fitting.losses", False),
        ("mlestruct/families/joint/model.py", "mlestruct.estimators.trainable", True),
        ("oracles/mlestruct_oracles/viterbi.py", "mlestruct.structures.graph", True),
        ("oracles/mlestruct_oracles/viterbi.py", "mlestruct.learning.dual", False),
        ("oracles/mlestruct_oracles/viterbi.py", "mlestruct.Chain", False),
        ("oracles/mlestruct_oracles/viterbi.py", "mlestruct_oracles.native", True),
    ],
)
def test_the_rule_itself(file: str, target: str, allowed: bool) -> None:
    assert (objection(ROOT / file, target) is None) is allowed


def test_import_is_lazy() -> None:
    code = f"import sys, mlestruct; print(*[m for m in {LAZY} if m in sys.modules])"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.split() == [], f"`import mlestruct` loads {answer.stdout.strip()}"


def test_families_load_only_when_asked_for() -> None:
    code = (
        "import sys, mlestruct.learners, mlestruct.estimators, mlestruct.inference\n"
        "print(*[m for m in sys.modules if m.startswith('mlestruct.families')])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []


def test_the_architecture_page_shows_these_layers() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    shown = page.partition("```text\n")[2].partition("```")[0].splitlines()
    assert [line.split() for line in shown] == LAYERS


def test_the_architecture_page_names_files_and_functions_that_exist() -> None:
    """Of the walk: `folder/file.py: name`."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    walk = page.partition("## From `fit(X, y)`")[2].partition("## One formula")[0]
    places = re.findall(r"`([a-z_/]+\.py): ([A-Za-z_.]+)`", walk)
    assert len(places) >= 10
    for file, name in places:
        text = (ROOT / "mlestruct" / file).read_text(encoding="utf-8")
        assert re.search(rf"(def|class) {name.split('.')[-1]}\b|^{name} =", text, re.M), (
            file,
            name,
        )


def test_no_class_name_stands_twice():
    """A reader who meets a name knows which class it is, without its module."""
    found: dict[str, list[str]] = {}
    for folder in ("mlestruct", "oracles"):
        for path in sources(folder):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef):
                    found.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert len(found) > 300
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}


def test_aliases_of_arrays_stand_in_one_module():
    """``Ints`` means the same everywhere: NumPy's kinds of arrays are named in structures/base."""
    found = {}
    for folder in (ROOT / "mlestruct", ROOT / "oracles"):
        for path in folder.rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            found[path.relative_to(ROOT).as_posix()] = re.findall(
                r"^\w+ = NDArray\[np\.", text, re.M
            )
    assert [name for name, lines in found.items() if lines] == ["mlestruct/structures/base.py"]


def test_the_architecture_page_names_modules_that_exist() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z_]+(?:/[a-z_]+)+\.py)\b", page))
    homes = (ROOT, ROOT / "mlestruct")
    lost = {name for name in named if not any((home / name).exists() for home in homes)}
    assert len(named) > 40
    assert lost == set()
