"""What every test shares: one BLAS thread a worker, no display, the optional shared data."""

import os
import subprocess
import sys

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")  # before NumPy: the workers already use every core
os.environ.setdefault("MPLBACKEND", "Agg")

from pathlib import Path  # noqa: E402

import numpy as np  # noqa: E402
import pytest  # noqa: E402

BUILD = Path(__file__).resolve().parents[1] / "mlestruct" / "native" / "build.py"


def pytest_configure(config: pytest.Config) -> None:
    """Build the kernels whose sources have changed, once, before any test imports them."""
    if not hasattr(config, "workerinput"):
        subprocess.run([sys.executable, BUILD], check=True)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Data that may not be redistributed, in the folder MLESTRUCT_DATA; skipped without."""
    folder = os.environ.get("MLESTRUCT_DATA")
    if not folder:
        pytest.skip("MLESTRUCT_DATA names no folder of shared data")
    assert Path(folder).is_dir(), f"MLESTRUCT_DATA={folder!r} is not a folder"
    return Path(folder)
