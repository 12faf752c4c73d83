"""Model files: what is loaded is what was saved, bit for bit, or a ValueError; nothing else runs.

A file is an ``.npz``: arrays and a JSON header, uncompressed, and as the archive's comment the
SHA-256 of everything before it. ``numpy.load`` opens it too. Nothing is ever unpickled, and
reading takes no more memory than the file's own size.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import stat
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

FORMAT, VERSION = "mlestruct", 1
LARGEST = 1 << 31  # bytes of a file
HEADER = "header.json"
HEADER_LARGEST = 1 << 24
KINDS = "biufU"  # booleans, numbers and text
DIGEST = 64  # hexadecimal digits of SHA-256
PIECE = 1 << 20  # bytes read at a time where nobody says how many there are
OPENED = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")
NESTED = 100  # levels of JSON that is read; what this library writes has a dozen
ARRAY = re.compile(  # the text before an array's numbers, as NumPy writes it
    r"\{'descr': '([<>|][a-zA-Z][\w\[\]]{0,9})', 'fortran_order': (True|False), "
    r"'shape': \(((?:\d{1,19}(?:, |,|(?=\))))*)\), \} *\n"
)
BESIDE_BRACKETS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[^][{}"]+|"', re.DOTALL)

UNREADABLE = (  # RuntimeError and its kin: encrypted, or of a later archive format
    zipfile.BadZipFile, EOFError, IndexError, KeyError, OverflowError, RuntimeError, TypeError,
    ValueError,
)  # fmt: skip

Arrays = dict[str, NDArray[Any]]


def save(
    path: str | os.PathLike[str],
    kind: str,
    arrays: Mapping[str, NDArray[Any]],
    header: Mapping[str, Any],
    *,
    largest: int = LARGEST,
    private: bool = False,
) -> None:
    """Write arrays and a JSON header; whatever ends the process leaves the old file or the new.

    Only its owner may read a ``private`` file; others are as the process's umask says.
    """
    if not Path(path).name:
        raise ValueError(f"{os.fspath(path)!r} names no file")
    whole = {"format": FORMAT, "version": VERSION, "kind": kind, "header": dict(header)}
    text = _json({**whole, "arrays": list(arrays)})
    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise ValueError(f"array {name!r} holds Python objects; files hold numbers")
        if array.dtype.kind not in KINDS:
            raise ValueError(f"{name} has dtype {array.dtype}; model files hold numbers and text")
    _refuse_large(len(text) + sum(array.nbytes for array in arrays.values()), path, largest)
    with fresh(Path(path), private) as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            archive.comment = b"0" * DIGEST  # its length is part of what is hashed
            archive.writestr(zipfile.ZipInfo(HEADER), text)
            for name, array in arrays.items():
                entry = zipfile.ZipInfo(f"{name}.npy")
                with archive.open(entry, "w", force_zip64=True) as stream:
                    npy.write_array(stream, array, version=(1, 0), allow_pickle=False)
        file.truncate(file.seek(-DIGEST, os.SEEK_END))
        file.seek(0)
        file.write(hashlib.file_digest(file, "sha256").hexdigest().encode())
        file.flush()
        os.fsync(file.fileno())
    _sync_directory(Path(path).parent)


@contextmanager
def fresh(path: Path, private: bool = False) -> Iterator[Any]:
    """A new file beside ``path``, in its place at the end and gone if anything goes wrong.

    Its name is nobody else's and it follows no link: what stands there already is not written to.
    A device or a pipe is no place for a file. Nobody but its owner may read a ``private`` one.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise ValueError(f"{path} is no regular file; name another place")
    name = None
    try:
        descriptor, name = tempfile.mkstemp(".part", f"{path.name}.", path.parent)
        with os.fdopen(descriptor, "w+b") as file:
            yield file
        if not private:
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(name, 0o666 & ~mask)
        os.replace(name, path)
    except OSError as error:
        raise OSError(
            error.errno, f"{error.strerror}; nothing new is written", str(path)
        ) from error
    finally:
        with suppress(OSError):
            os.unlink(name or "")


def load(
    path: str | os.PathLike[str], kind: str, *, largest: int = LARGEST
) -> tuple[Arrays, dict[str, Any]]:
    """The arrays and the header of a file of this kind; any other file is refused by reason."""
    raw = content(path, "model file", largest)
    if not raw.startswith(b"PK"):
        raise ValueError(f"{path} is not a model file: it is no npz archive")
    if hashlib.sha256(raw[:-DIGEST]).hexdigest().encode() != raw[-DIGEST:]:
        raise ValueError(f"{path} is damaged or was not written by mlestruct: its checksum differs")
    try:
        entries = _entries(raw)
        whole = parsed(entries.pop(HEADER).decode())
        found, version, header = whole["kind"], whole["version"], whole["header"]
        if whole["format"] != FORMAT:
            raise ValueError(f"its format is {whole['format']!r}")
        if version == VERSION:
            arrays = {name.removesuffix(".npy"): _array(name, e) for name, e in entries.items()}
            if list(arrays) != whole["arrays"]:
                raise ValueError(f"it should hold {whole['arrays']}, and holds {list(arrays)}")
    except UNREADABLE as error:
        why = str(error) or type(error).__name__
        raise ValueError(f"{path} is not a model file: {why}") from error
    if version != VERSION:
        raise ValueError(f"{path} has format version {version}; this mlestruct reads {VERSION}")
    if found != kind:
        raise ValueError(f"{path} holds a {found}, not a {kind}")
    return arrays, header


def content(path: str | os.PathLike[str], what: str, largest: int = LARGEST) -> bytes:
    """All of a file; what may have no end (a device, somebody's pipe) is refused unread.

    A pipe that the caller of a command has opened for it, as in ``<(…)``, is read to its end.
    """
    known, place = os.stat(path), os.fspath(Path(path).absolute())
    ours = stat.S_ISFIFO(known.st_mode) and place.startswith(OPENED)
    if not (stat.S_ISREG(known.st_mode) or ours):
        raise ValueError(f"{path} is not a {what}: it is no regular file")
    _refuse_large(known.st_size, path, largest)
    if known.st_size:
        return Path(path).read_bytes()
    found = bytearray()
    with open(path, "rb") as file:
        while more := file.read(PIECE):
            found += more
            _refuse_large(len(found), path, largest)
    return bytes(found)


def parsed(text: str, **how: Any) -> Any:
    """What ``json.loads(text, **how)`` finds; ValueError for JSON nested too deeply to be ours.

    The levels are counted first: a parser that recurses to Python's limit takes down whatever
    else happens to run there, finalisers of the user's own objects among them.
    """
    signs = BESIDE_BRACKETS.sub("", text)
    if max(accumulate(1 if sign in "[{" else -1 for sign in signs), default=0) > NESTED:
        raise ValueError(f"its JSON is nested too deeply: more than {NESTED} levels")
    return json.loads(text, **how)


def _refuse_large(size: int, path: Any, largest: int = LARGEST) -> None:
    if size > largest:
        raise ValueError(f"{path} has {size} bytes; it may have at most {largest}")


def _json(whole: Mapping[str, Any]) -> bytes:
    try:
        text = json.dumps(whole, ensure_ascii=False)
    except TypeError as error:
        raise ValueError(f"a header holds JSON only: {error}") from error
    if len(text.encode()) > HEADER_LARGEST:
        raise ValueError(f"a header has at most {HEADER_LARGEST} bytes, this has {len(text)}")
    return text.encode()


def _sync_directory(folder: Path) -> None:
    """A rename lasts once its directory is on the disk, where systems can be asked for that."""
    if os.name != "posix":
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _entries(raw: bytes) -> dict[str, bytes]:
    """Contents by name: stored entries only, so that sizes cannot lie; each name once."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        listed = archive.infolist()
        names = {entry.filename for entry in listed}
        if len(names) < len(listed) or HEADER not in names:
            raise ValueError(f"it needs one {HEADER}, and every name once")
        for entry in listed:
            if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size:
                raise ValueError(f"{entry.filename} is compressed; model files are not")
            if entry.filename == HEADER and entry.file_size > HEADER_LARGEST:
                raise ValueError(f"{HEADER} has {entry.file_size} bytes")
        return {entry.filename: archive.read(entry) for entry in listed}


def _array(name: str, content: bytes) -> NDArray[Any]:
    """An array exactly as long as its bytes, of numbers, booleans or text."""
    stream = io.BytesIO(content)
    if npy.read_magic(stream) != (1, 0):
        raise ValueError(f"{name} is no array of version 1.0")
    told = ARRAY.fullmatch(stream.read(int.from_bytes(stream.read(2), "little")).decode("latin1"))
    if told is None:
        raise ValueError(f"{name} does not say what it holds as NumPy would")
    dtype, by_column = np.dtype(told[1]), told[2] == "True"
    shape = tuple(int(size) for size in told[3].split(",") if size.strip())
    if dtype.hasobject or dtype.kind not in KINDS:
        raise ValueError(f"{name} has dtype {dtype}; model files hold numbers and text")
    count = int(np.prod(shape, dtype=object))
    if min(shape, default=0) < 0 or count * dtype.itemsize != len(content) - stream.tell():
        raise ValueError(f"{name} claims shape {shape} of {dtype} in {len(content)} bytes")
    flat = np.frombuffer(content, dtype, count, stream.tell()).copy()
    return flat.reshape(shape, order="F" if by_column else "C")
