"""The functions of scipy.special that dptally uses; no other module imports scipy.special.

They are compiled numpy ufuncs of ``scipy.special._ufuncs``. The package around that module takes twenty times as
long to load as the module itself (0.18 s of 0.19 s: it wraps every function for other array libraries), and a
command that answers in milliseconds should not wait for it. So the compiled module is loaded alone, beneath a
package that has a path and no contents, which is forgotten at once: a later ``import scipy.special`` loads the true
package and finds the compiled module ready. The functions are the same objects by either way.
"""

from __future__ import annotations

import importlib
import sys
import threading
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import Any

import scipy

__all__ = [
    "bdtr",
    "bdtrc",
    "betainc",
    "betaincc",
    "betainccinv",
    "betaincinv",
    "erfcx",
    "erfinv",
    "expit",
    "gammaln",
    "log_ndtr",
    "ndtr",
    "ndtri",
    "ndtri_exp",
]

_PACKAGE = "scipy.special"


def _compiled() -> Any:
    """The module that holds the ufuncs: alone where that can be done unseen, with its package otherwise."""
    spec = PathFinder.find_spec(_PACKAGE, scipy.__path__)
    # with another thread about, it could meet the empty package
    if spec is None or _PACKAGE in sys.modules or threading.active_count() > 1:
        return importlib.import_module(_PACKAGE)
    sys.modules[_PACKAGE] = module_from_spec(spec)
    try:
        return importlib.import_module(f"{_PACKAGE}._ufuncs")
    except ImportError:  # a scipy that is laid out otherwise
        pass
    finally:
        del sys.modules[_PACKAGE]
    return importlib.import_module(_PACKAGE)


_ufuncs = _compiled()
bdtr: Any = _ufuncs.bdtr
bdtrc: Any = _ufuncs.bdtrc
betainc: Any = _ufuncs.betainc
betaincc: Any = _ufuncs.betaincc
betainccinv: Any = _ufuncs.betainccinv
betaincinv: Any = _ufuncs.betaincinv
erfcx: Any = _ufuncs.erfcx
erfinv: Any = _ufuncs.erfinv
expit: Any = _ufuncs.expit
gammaln: Any = _ufuncs.gammaln
log_ndtr: Any = _ufuncs.log_ndtr
ndtr: Any = _ufuncs.ndtr
ndtri: Any = _ufuncs.ndtri
ndtri_exp: Any = _ufuncs.ndtri_exp
