"""Compiles the kernel: ``python kernel/build.py [directory]``. Needs a C compiler and Python's headers, nothing else.

The module goes next to the package's sources, where an editable install finds it, or into the directory given. It is
built by the stable ABI: one file serves Python 3.11 and every later one.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parent / "src" / "dptally"
#: no contraction into fused operations, no fast mathematics: the error bounds count every rounding
FLAGS = ("-std=c11", "-O3", "-ffp-contract=off", "-fno-fast-math", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra")


def compiler() -> list[str] | None:
    """The C compiler's command: ``CC``, or the first of cc, gcc and clang that is there."""
    if os.environ.get("CC"):
        return shlex.split(os.environ["CC"])
    found = next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), None)
    return None if found is None else [found]


def _stamp() -> str:
    """What the loader compares: version and interface."""
    text = (PACKAGE / "numerics" / "compiled.py").read_text(encoding="utf-8")
    found = re.search(r'^INTERFACE = "([\w./]+)"', text, re.MULTILINE)
    return f'-DDPTALLY_INTERFACE="{found[1]}"' if found else ""


def build(directory: Path = PACKAGE, extra: tuple[str, ...] = ()) -> Path:
    """The path of the module. Raises RuntimeError where there is no compiler or it fails."""
    command = compiler()
    headers = Path(sysconfig.get_path("include"))
    if command is None or not (headers / "Python.h").exists():
        raise RuntimeError("no C compiler or no Python headers: the package works without the kernel")
    if os.name == "nt":
        raise RuntimeError("the kernel is built with gcc or clang: the package works without it")
    target = Path(directory) / "_kernel.abi3.so"
    shared = ("-bundle", "-undefined", "dynamic_lookup") if sys.platform == "darwin" else ("-shared",)
    made = target.with_suffix(f".{os.getpid()}")
    sources = sorted(str(path) for path in HERE.glob("*.c"))
    arguments = [*command, *FLAGS, *extra, _stamp(), f"-I{headers}", *shared, *sources, "-lm", "-o", str(made)]
    result = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if result.returncode:
        made.unlink(missing_ok=True)
        raise RuntimeError(f"{command[0]} failed:\n{result.stderr}")
    made.replace(target)  # at once: a running program keeps the file it has loaded
    return target


if __name__ == "__main__":
    try:
        print(build(Path(sys.argv[1]) if len(sys.argv) > 1 else PACKAGE))
    except RuntimeError as failure:
        sys.exit(str(failure))
