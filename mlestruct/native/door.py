"""Write Python functions from the C headers of the kernels: types, sizes and checks.

A header declares structs of arrays and functions. Annotations are macros that C++ does not see:

    N(size)    the length of an array, an expression in the other parameters or fields
    BELOW(n)   every entry of this array of indices is at least 0 and below n, checked at each call
    MAYBE      the array, or the struct of a function's parameter, may be None

``const`` arrays are read only. A function that returns ``status`` fails by memory alone. A struct
that is declared without fields is an object of the library's own: ``X_new`` makes it, ``X_free``
ends it. The header's own comments say what a function does.
"""

from __future__ import annotations

import contextlib
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

TYPES = {  # of C, of arrays in annotations, and the check
    "double": ("Array", "doubles"),
    "int64_t": ("Ints", "integers"),
    "int32_t": ("NDArray[np.int32]", "small_integers"),
    "int8_t": ("NDArray[np.int8]", "tiny_integers"),
    "uint8_t": ("NDArray[np.uint8]", "octets"),
    "bool": ("Marks", "marks"),
}
SCALARS = {"double": "float", "bool": "bool"}
STRUCT = re.compile(r"struct\s+(?P<name>\w+)\s*(?:\{(?P<body>[^}]*)\})?\s*;", re.S)
FUNCTION = re.compile(
    r"(?P<type>[\w ]+?[\s*]+)(?P<name>\w+)\s*"
    r"\((?P<body>(?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)\s*;",
    re.S,
)
NOTE = r"\b{}\(((?:[^()]|\([^()]*\))*)\)"  # brackets with brackets inside
PART = re.compile(
    r"(?P<const>const\s+)?(?:struct\s+)?(?P<type>\w+)\s*(?P<star>\*)?\s*(?P<name>\w+)(?P<notes>.*)",
    re.S,
)


@dataclass(frozen=True)
class Declaration:
    """A parameter of a function, or a field of a struct."""

    name: str
    type: str
    pointer: bool
    const: bool
    size: str | None
    below: str | None
    maybe: bool

    @classmethod
    def of(cls, text: str) -> Declaration:
        """Read one declaration with its annotations."""
        found = PART.fullmatch(text.strip())
        if found is None:
            raise ValueError(f"the door cannot read {text.strip()!r}")
        notes = found["notes"]
        size, below = (_bracket(notes, name) for name in ("N", "BELOW"))
        const, maybe = bool(found["const"]), "MAYBE" in notes
        return cls(found["name"], found["type"], bool(found["star"]), const, size, below, maybe)

    @property
    def is_array(self) -> bool:
        """Whether this is a pointer to numbers."""
        return self.pointer and self.type in TYPES

    @property
    def annotation(self) -> str:
        """Return the type in Python."""
        if self.is_array:
            return TYPES[self.type][0] + (" | None" if self.maybe else "")
        if self.pointer:
            return class_name(self.type) + (" | None" if self.maybe else "")
        return SCALARS.get(self.type, "int")

    def pointer_code(self, owner: str = "") -> str:
        """Return the code that checks the argument and makes its pointer."""
        if not self.is_array:
            code = f"{self.name}.pointer" if self.pointer else self.name
            return f"NULL if {self.name} is None else {code}" if self.maybe else code
        check = TYPES[self.type][1]
        more = "" if self.const else ", True"
        code = f'{check}({self.name}, {self.size}, "{owner}{self.name}"{more})'
        return f"NULL if {self.name} is None else {code}" if self.maybe else code


def _bracket(notes: str, name: str) -> str | None:
    """Return what stands in the brackets of an annotation."""
    found = re.search(NOTE.format(name), notes)
    return found[1] if found else None


def _without_notes(text: str) -> str:
    """Return the declarations as C knows them."""
    return re.sub(NOTE.format("(?:N|BELOW)") + r"|\bMAYBE\b", "", text)


def class_name(name: str) -> str:
    """Return the Python class of a C struct."""
    return "".join(word.capitalize() for word in name.split("_"))


def _parts(body: str, separator: str) -> list[Declaration]:
    texts = re.split(separator + r"(?![^()]*\))", body)  # none within brackets
    return [Declaration.of(text) for text in texts if text.strip() not in ("", "void")]


def _struct(found: re.Match[str]) -> str:
    name, body = class_name(found["name"]), found["body"]
    head = f'class {name}:\n    """The C struct {found["name"]}."""\n'
    if body is None:
        return head + (
            '\n    __slots__ = ("pointer",)\n\n'
            "    def __init__(self, pointer: Any) -> None:\n        self.pointer = pointer\n"
        )
    parts = _parts(body, ";")
    given = "".join(f", {part.name}: {part.annotation}" for part in parts)
    lines = [head, f"    def __init__(self{given}) -> None:"]
    lines += [f'        self.pointer = pointer = FFI.new("struct {found["name"]} *")']
    for part in parts:
        value = part.pointer_code(f"{name}.")
        lines.append(f"        self.{part.name} = {part.name}")
        if part.is_array:
            lines.append(f"        self._{part.name} = {value}")
            value = f"self._{part.name}"
        if part.below:
            lines.append(f'        below({part.name}, {part.below}, "{name}.{part.name}")')
        lines.append(f"        pointer.{part.name} = {value}")
    return "\n".join(lines) + "\n"


def _function(found: re.Match[str]) -> str:
    name, parts = found["name"], _parts(found["body"], ",")
    type_ = found["type"].replace("struct", "").strip()
    opaque = type_.rstrip("* ") if type_.endswith("*") else None
    known = {"void": "None", "status": "None", **SCALARS}
    returned = class_name(opaque) if opaque else known.get(type_, "int")
    given = ", ".join(f"{part.name}: {part.annotation}" for part in parts)
    lines = [f"def {name}({given}) -> {returned}:"]
    for part in parts:
        if part.is_array:
            lines.append(f"    _{part.name} = {part.pointer_code()}")
        if part.below:
            lines.append(f'    below({part.name}, {part.below}, "{name}: {part.name}")')
    asked = ", ".join(f"_{p.name}" if p.is_array else p.pointer_code() for p in parts)
    call = f"LIB.{name}({asked})"
    if type_ == "status":
        lines += [f"    if {call}:", f'        raise MemoryError("{name}")']
    elif opaque:
        lines += [f"    made = {call}", "    if not made:", f'        raise MemoryError("{name}")']
        lines += [f"    return {returned}(FFI.gc(made, LIB.{opaque}_free))"]
    elif type_ == "int64_t":
        lines += [f"    found: int = {call}", "    if found == NO_MEMORY:"]
        lines += [f'        raise MemoryError("{name}")', "    return found"]
    elif type_ == "void":
        lines += [f"    {call}"]
    else:
        lines += [f"    found: {returned} = {call}", "    return found"]
    return "\n".join(lines) + "\n"


PREAMBLE = '''"""Checked calls of the kernels, written by build.py from this folder's headers."""

# ruff: noqa
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mlestruct.native.arrays import *
from mlestruct.native.library import load
{own}

if TYPE_CHECKING:
    from mlestruct.structures.base import Array, Ints, Marks

FFI: Any = ffi
LIB: Any = load(FFI, __file__, "{digest}")
NULL: Any = FFI.NULL
'''


def write_door(folder: Path, digest: str) -> None:
    """Write ``_cffi.py`` and ``_door.py`` into a folder of headers, if they have changed."""
    import cffi

    texts = [path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.h"))]
    text = re.sub(r"(?m)^\s*#.*$|//.*$|/\*(?s:.*?)\*/", "", "\n".join(texts))
    text = re.sub(r'extern "C"\s*\{', "", text).replace("EXPORT ", "")
    text = re.sub(r"(?m)^\}\s*$", "", text)
    code = [PREAMBLE.format(digest=digest, own=f"from {_package(folder)}._cffi import ffi")]
    without = STRUCT.sub("", text)
    code += [_struct(found) for found in STRUCT.finditer(text)]
    code += [
        _function(found)
        for found in FUNCTION.finditer(without)
        if not found["name"].endswith("_free")
    ]
    maker = cffi.FFI()
    maker.cdef(
        "typedef int64_t status;\nconst char *mlestruct_headers(void);\n" + _without_notes(text)
    )
    maker.set_source(f"{_package(folder)}._cffi", None)
    with tempfile.TemporaryDirectory() as place, contextlib.redirect_stdout(None):
        made = Path(place) / "_cffi.py"
        maker.emit_python_code(str(made))
        written = {"_cffi.py": made.read_text(), "_door.py": "\n\n".join(code)}
    for name, new in written.items():
        target = folder / name
        if not target.exists() or target.read_text(encoding="utf-8") != new:
            target.write_text(new, encoding="utf-8")


def _package(folder: Path) -> str:
    return f"{folder.parent.name}.native"
