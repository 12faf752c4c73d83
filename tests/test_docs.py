"""Every Python block of the documentation runs, in order, one namespace per page.

A block after `<!-- no-run -->` is skipped. A ```text block after `<!-- output -->` must be what the
Python block before it printed.
"""

import contextlib
import io
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import cloudpickle
import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *sorted(p for p in (ROOT / "docs").rglob("*.md") if "_build" not in p.parts),
]
FENCE = re.compile(
    r"^(?:<!-- (?P<mark>no-run|output) -->\n+)?^```(?P<language>[^\n`]*)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


def blocks(text: str) -> Iterator[tuple[str | None, str, str, int]]:
    """(mark, language, body, line of the body's start counted from 0) of each fenced block."""
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start("body"))
        yield match["mark"], match["language"].strip(), match["body"], line


def run_page(path: Path, module: types.ModuleType) -> int:
    """Run the page's blocks in the module; the number that ran."""
    printed, ran = "", 0
    for mark, language, body, line in blocks(path.read_text(encoding="utf-8")):
        place = f"{path.name}:{line + 1}"
        if language == "python" and mark != "no-run":
            # Blank lines in front: tracebacks, and Numba's source look-up, find the page's line.
            code = compile("\n" * line + body, str(path), "exec")
            with contextlib.redirect_stdout(io.StringIO()) as output:
                exec(code, module.__dict__)
            printed, ran = output.getvalue(), ran + 1
        elif mark == "output":
            assert language == "text", f"{place}: an output block is ```text, not ```{language}"
            assert printed.strip() == body.strip(), f"{place}: the block before prints otherwise"
        else:
            assert not language.startswith("py") or mark, f"{place}: a block to run is ```python"
    return ran


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_page_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType("documentation")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # dataclasses look their module up
    cloudpickle.register_pickle_by_value(module)  # as what a notebook defines goes to workers
    try:
        run_page(path, module)
    finally:
        cloudpickle.unregister_pickle_by_value(module)


PAGE = """
```python
print(1)
```

<!-- output -->
```text
{output}
```

<!-- no-run -->
```python
raise RuntimeError
```
"""


def test_output_is_compared(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE.format(output=1))
    assert run_page(page, types.ModuleType("page")) == 1
    page.write_text(PAGE.format(output=2))
    with pytest.raises(AssertionError, match=r"page\.md:8: the block before prints otherwise"):
        run_page(page, types.ModuleType("page"))


def test_a_misspelt_fence_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```py\nprint(1)\n```\n")
    with pytest.raises(AssertionError, match=r"page\.md:2: a block to run is ```python"):
        run_page(page, types.ModuleType("page"))
