"""Examples in a folder of memory-mapped files, written from an iterator, read a file at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlestruct.batch import Batch
from mlestruct.features import Dense, Features
from mlestruct.structures.base import Structure

Made = Callable[[tuple[int, ...]], Structure]
"""The structure of an example whose features have this shape, their last axis left away."""
Read = Callable[[Batch[Any], Any], Features]
"""Features of a batch from its feature rows, as ``Dense.of`` and ``Tied.of``."""
PARTS = ("shapes", "rows", "outcomes")


@dataclass(frozen=True)
class Stored:
    """A folder of examples. ``sources()`` are what :func:`mlestruct.learners.streamed` learns from.

    A file's examples are a shard: they are in memory together, and so is what inference needs.
    """

    folder: Path
    structure: Made
    features: Read = Dense.of

    @classmethod
    def write(
        cls,
        folder: str | os.PathLike[str],
        examples: Iterable[tuple[Any, Any]],
        structure: Made,
        features: Read = Dense.of,
        per_file: int = 10_000,
    ) -> Stored:
        """From (features, outcome) one after the other; outcomes are encoded and checked now."""
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=False)
        for number, some in enumerate(_chunks(iter(examples), per_file)):
            arrays = [np.asarray(x) for x, _ in some]
            shapes = [array.shape[:-1] for array in arrays]
            known = {shape: structure(shape) for shape in dict.fromkeys(shapes)}
            batch = Batch.of([known[shape] for shape in shapes], [y for _, y in some])
            assert batch.target is not None
            whole = (batch.target == batch.target.astype(np.uint8)).all()
            target = batch.target.astype(np.uint8) if whole else batch.target
            rows = np.concatenate([array.reshape(-1, array.shape[-1]) for array in arrays])
            for name, array in zip(PARTS, (np.array(shapes), rows, target), strict=True):
                np.save(_file(place, number, name), array, allow_pickle=False)
        return cls(place, structure, features)

    def sources(self) -> list[Callable[[], tuple[Batch[Any], Features]]]:
        """One source per file, in order."""
        count = len(list(self.folder.glob(f"*.{PARTS[0]}.npy")))
        if count == 0:
            raise ValueError(f"{self.folder} holds no examples: Stored.write puts some there")
        return [partial(self.read, number) for number in range(count)]

    def read(self, number: int) -> tuple[Batch[Any], Features]:
        """The examples of one file."""
        shapes, rows, target = (_load(_file(self.folder, number, name)) for name in PARTS)
        different, which = np.unique(shapes, axis=0, return_inverse=True)
        structures = tuple(self.structure(tuple(map(int, shape))) for shape in different)
        size = int(np.array([s.size for s in structures])[which].sum())
        if len(target) != size:
            raise ValueError(
                f"{_file(self.folder, number, PARTS[2])} has outcomes of {len(target)} coordinates "
                f"for structures of {size}: was it written with another structure?"
            )
        plain = np.ones(len(which)), np.zeros(size)
        batch = Batch(structures, which.reshape(-1), *plain, target.astype(float))
        return batch, self.features(batch, rows)


def _chunks(examples: Iterator[Any], size: int) -> Iterator[list[Any]]:
    while chunk := list(islice(examples, size)):
        yield chunk


def _file(folder: Path, number: int, name: str) -> Path:
    return folder / f"{number:06d}.{name}.npy"


def _load(path: Path) -> NDArray[Any]:
    try:
        loaded: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise ValueError(f"{path} is no file of stored examples: {error}") from error
    return loaded
