"""What hatchling asks when it builds a wheel: a pure one, unless DPTALLY_BUILD_KERNEL=1 asks for the kernel in it.

A wheel with the kernel is of one platform and of the stable ABI: Python 3.11 and every later one.
"""

from __future__ import annotations

import os
import runpy
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Kernel(BuildHookInterface):  # type: ignore[type-arg]
    """See ``tool.hatch.build.targets.wheel.hooks.custom`` in pyproject.toml."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable" or os.environ.get("DPTALLY_BUILD_KERNEL", "0") != "1":
            return
        build = runpy.run_path(str(Path(self.root) / "kernel" / "build.py"))["build"]
        made = build(Path(tempfile.mkdtemp(prefix="dptally-kernel-")))
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = f"cp311-abi3-{platform}"
        build_data["force_include"][str(made)] = f"dptally/{made.name}"
