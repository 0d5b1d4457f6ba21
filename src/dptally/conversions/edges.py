"""The table of edges: which definition implies which, by which function and theorem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dptally.accounting.two_points import THEOREM
from dptally.conversions.alpha import alpha_to_approx, alpha_to_approx_paper, alpha_to_renyi
from dptally.conversions.approximate import approx_to_approx, approx_to_approx_delta
from dptally.conversions.concentrated import (
    zcdp_to_alpha,
    zcdp_to_approx,
    zcdp_to_approx_bun_steinke,
    zcdp_to_approx_cks,
    zcdp_to_approx_delta,
    zcdp_to_renyi,
)
from dptally.conversions.gaussian import (
    gdp_to_alpha,
    gdp_to_approx,
    gdp_to_approx_delta,
    gdp_to_renyi,
    gdp_to_zcdp,
)
from dptally.conversions.pure import (
    pure_to_alpha,
    pure_to_approx,
    pure_to_approx_mironov,
    pure_to_gdp,
    pure_to_renyi,
    pure_to_renyi_mironov,
    pure_to_zcdp,
)
from dptally.conversions.renyi import (
    renyi_to_alpha,
    renyi_to_approx,
    renyi_to_approx_cks,
    renyi_to_approx_delta,
    renyi_to_approx_mironov,
)
from dptally.errors import InvalidArgument

__all__ = ["EDGES", "Edge", "edge"]


@dataclass(frozen=True, slots=True)
class Edge:
    """``function(*guarantee, *asked)`` gives the ``gives`` of the target definition, on the safe side.

    ``guarantee`` names the parameters of the source definition and ``asked`` those of the question.
    """

    source: str
    target: str
    function: Callable[..., float]
    theorem: str
    guarantee: tuple[str, ...]
    asked: tuple[str, ...]
    gives: str = "epsilon"


_LIU = "Liu et al. 2022 (GDPT), Thm. 2.1"
_CKS = "Canonne, Kamath, Steinke 2020, Prop. 12 (= Balle et al. 2020, Thm. 21)"
_BEST = f"{THEOREM}, the order optimised"
_ADP = "Liu, Wang 2025, Def. 8: a (a-1) e_alpha + 1 = exp((a-1) e_renyi)"
_GDP = "Dong, Roth, Su 2022, Cor. 2.13"
_ONE, _ORDER, _RHO, _MU = ("epsilon",), ("order", "epsilon"), ("rho",), ("mu",)
_PAIR = ("epsilon", "delta")

#: the first edge of a (source, target, gives) is the tightest; later ones are named alternatives. The first is the
#: best possible (some mechanism with the guarantee attains it) for every pair but zCDP to approximate DP, where the
#: optimum over all orders at once is not known
EDGES: tuple[Edge, ...] = (
    Edge("pure", "approx", pure_to_approx, _LIU, _ONE, ("delta",)),
    Edge("pure", "approx", pure_to_approx_mironov, "Mironov 2017, Cor. 1", _ONE, ("count", "delta")),
    Edge("pure", "zcdp", pure_to_zcdp, "Bun, Steinke 2016, Prop. 1.4, sharp", _ONE, (), "rho"),
    Edge("pure", "gdp", pure_to_gdp, "Liu et al. 2022 (GDPT), Thm. 5.1", _ONE, (), "mu"),
    Edge("pure", "renyi", pure_to_renyi, "Mironov 2017, Prop. 5, as the dominating pair", _ONE, ("order",)),
    Edge("pure", "renyi", pure_to_renyi_mironov, "Mironov 2017, Lemma 1", _ONE, ("order",)),
    Edge("pure", "alpha", pure_to_alpha, f"Mironov 2017, Prop. 5; {_ADP}", _ONE, ("order",)),
    Edge("approx", "approx", approx_to_approx, _LIU, _PAIR, ("target_delta",)),
    Edge("approx", "approx", approx_to_approx_delta, _LIU, _PAIR, ("target_epsilon",), "delta"),
    Edge("renyi", "approx", renyi_to_approx, THEOREM, _ORDER, ("delta",)),
    Edge("renyi", "approx", renyi_to_approx_cks, _CKS, _ORDER, ("delta",)),
    Edge("renyi", "approx", renyi_to_approx_mironov, "Mironov 2017, Prop. 3", _ORDER, ("delta",)),
    Edge("renyi", "approx", renyi_to_approx_delta, THEOREM, _ORDER, ("target_epsilon",), "delta"),
    Edge("renyi", "alpha", renyi_to_alpha, _ADP, _ORDER, ()),
    Edge("alpha", "renyi", alpha_to_renyi, _ADP, _ORDER, ()),
    Edge("alpha", "approx", alpha_to_approx, f"{_ADP}; {THEOREM}", _ORDER, ("delta",)),
    Edge("alpha", "approx", alpha_to_approx_paper, "Liu, Wang 2025, Prop. 4, corrected", _ORDER, ("delta",)),
    Edge("zcdp", "renyi", zcdp_to_renyi, "Bun, Steinke 2016, Def. 1.1", _RHO, ("order",)),
    Edge("zcdp", "alpha", zcdp_to_alpha, f"Bun, Steinke 2016, Def. 1.1; {_ADP}", _RHO, ("order",)),
    Edge("zcdp", "approx", zcdp_to_approx, _BEST, _RHO, ("delta",)),
    Edge("zcdp", "approx", zcdp_to_approx_cks, f"{_CKS}, the order optimised", _RHO, ("delta",)),
    Edge("zcdp", "approx", zcdp_to_approx_bun_steinke, "Bun, Steinke 2016, Prop. 1.3", _RHO, ("delta",)),
    Edge("zcdp", "approx", zcdp_to_approx_delta, _BEST, _RHO, ("epsilon",), "delta"),
    Edge("gdp", "approx", gdp_to_approx, _GDP, _MU, ("delta",)),
    Edge("gdp", "approx", gdp_to_approx_delta, _GDP, _MU, ("epsilon",), "delta"),
    Edge("gdp", "zcdp", gdp_to_zcdp, "Dong, Roth, Su 2022, Cor. B.6", _MU, (), "rho"),
    Edge("gdp", "renyi", gdp_to_renyi, "Dong, Roth, Su 2022, Cor. B.6", _MU, ("order",)),
    Edge("gdp", "alpha", gdp_to_alpha, f"Dong, Roth, Su 2022, Cor. B.6; {_ADP}", _MU, ("order",)),
)


def edge(source: str, target: str, gives: str | None = None) -> Edge:
    """The tightest edge from one definition to another; refused where there is none.

    >>> edge("pure", "zcdp").theorem
    'Bun, Steinke 2016, Prop. 1.4, sharp'
    """
    named = all(isinstance(name, str) for name in (source, target, "" if gives is None else gives))
    for candidate in EDGES if named else ():
        if (candidate.source, candidate.target) == (source, target) and gives in (None, candidate.gives):
            return candidate
    known = sorted({(e.source, e.target) for e in EDGES})
    raise InvalidArgument("source, target", f"one of {known}", (source, target, gives))
