"""The page: ``dptally serve``. Server-rendered, on loopback by default, without a word to any other machine.

It draws and prints the library's answers and computes no privacy itself. A request names no file: plans and claims are
texts or bytes, and the ledger is the one that the server was started with.
"""

import importlib.util

from dptally.errors import MissingExtra

if any(importlib.util.find_spec(package) is None for package in ("fastapi", "uvicorn", "jinja2")):
    raise MissingExtra("FastAPI", "web")

from dptally.web.application import application as application
from dptally.web.settings import Declared as Declared
from dptally.web.settings import Settings as Settings
