"""Hatch's hook: compile the kernels before a wheel or an editable installation is made."""

from __future__ import annotations

import importlib.util
import os
import sys
import sysconfig
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # who only reads this module, such as the manual, needs no hatchling
    BuildHookInterface = object

spec = importlib.util.spec_from_file_location("build", Path(__file__).with_name("build.py"))
assert spec is not None
assert spec.loader is not None
build = importlib.util.module_from_spec(spec)
spec.loader.exec_module(build)


class NativeHook(BuildHookInterface):
    """Adds the compiled libraries and the functions that call them to what is installed."""

    def dependencies(self) -> list[str]:
        """Ask for a compiler from the package index where the machine has none."""
        try:
            build.compiler()
        except build.Failed:
            return ["ziglang>=0.17,<0.18"]
        return []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build every level for a wheel, and this machine's alone for an editable installation."""
        try:
            build.build([build.best_level()] if version == "editable" else None)
        except build.Failed as error:
            sys.exit(f"mlestruct: the native kernels could not be built:\n{error}")
        platform = os.environ.get("MLESTRUCT_PLATFORM") or sysconfig.get_platform()
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform.replace('-', '_').replace('.', '_')}"
