r"""The losses whose largest is of one size: the contour of a difference of n-fold measures.

W_j^n - W_{j-1}^n, with W_j a law below an edge, is a nonnegative measure; its transform is prod a^n - prod b^n with
a = b + h, b the transform below the lower edge and h that between the edges.
Derivations: docs/certificates.md, "Soft edges".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dptally.accounting.certified.contour.aliasing import alias_period
from dptally.accounting.certified.contour.chernoff import log_chernoff
from dptally.accounting.certified.contour.inversion import Inversion
from dptally.accounting.certified.contour.saddle import log_size_at
from dptally.accounting.certified.contour.tables import Losses, merged
from dptally.accounting.certified.tuning import JumpTuning
from dptally.law.characteristic import Characteristic, MomentTable, SoftCut, Transformable
from dptally.law.law import Floats
from dptally.numerics.complexes import log1p_complex
from dptally.numerics.rounding import EPS

__all__ = ["JumpTerm", "contour", "difference", "finite"]

_MOST_RATIO = 350.0  # nats between the moments of jumps and of the rest: what the doubles hold


@dataclass(frozen=True, slots=True)
class JumpTerm:
    """W_j^n - W_{j-1}^n: for each law its count, the part below the lower edge and the part between the edges."""

    light: Losses
    heavy: list[tuple[Transformable, int] | None]  # None for a law that is not cut
    edge: SoftCut
    table: MomentTable  # of log(M_j^n - M_{j-1}^n), upper bounds


def finite(table: MomentTable) -> MomentTable:
    columns = [table.theta, table.moment, table.error, table.first, table.second]
    keep = np.isfinite(columns).all(axis=0)
    return MomentTable(*(column[keep] for column in columns))


def difference(
    light: Losses, tables: list[MomentTable], heavy: list[tuple[Transformable, int] | None], theta: Floats
) -> MomentTable:
    """log(prod (M_b + M_h)^n - prod M_b^n), rounded up, at the tilts where everything is finite."""
    base = np.zeros_like(theta)
    more = np.zeros_like(theta)
    for (_, n), table, jump in zip(light, tables, heavy, strict=True):
        base += n * (table.moment + table.error + 2 * EPS * np.abs(table.moment))
        if jump is not None:
            between = jump[0].moment_table(theta)
            ratio = between.moment + between.error - table.moment + table.error
            ratio += 4 * EPS * (np.abs(between.moment) + np.abs(table.moment))
            more += n * np.logaddexp(0.0, ratio) * (1 + 8 * EPS)
    moment = base + more + np.log(-np.expm1(-more))
    moment += 16 * EPS * (len(light) + np.abs(base) + more)
    zero = np.zeros_like(theta)
    return finite(MomentTable(theta, moment, zero, zero, zero))


def contour(term: JumpTerm, epsilon: float, log_delta: float, tuning: JumpTuning) -> Inversion | None:
    """The contour of one term near its saddle for this eps; a term far below delta may be less sharp."""
    bound = log_chernoff(term.table, epsilon)
    relative = tuning.relative * math.exp(min(max(0.0, log_delta - float(bound.min())), 20.0))
    middle = float(term.table.theta[int(np.argmin(bound))])
    around = middle * np.asarray(tuning.around)
    fine = difference(term.light, [law.moment_table(around) for law, _ in term.light], term.heavy, around)
    tilts = merged(term.table, fine)
    if len(fine.theta) < 3:
        return None
    best = int(np.argmin(log_chernoff(fine, epsilon)[1:-1])) + 1
    theta = float(fine.theta[best])
    gap = np.diff(fine.theta[best - 1 : best + 2])
    slopes = np.diff(fine.moment[best - 1 : best + 2]) / gap
    variance = max(0.0, float((slopes[1] - slopes[0]) / gap.mean()))
    log_size = log_size_at(theta, variance) - 2.0
    period = alias_period(tilts, theta, float(fine.moment[best]), epsilon, log_size, relative)
    if not math.isfinite(period):
        return None
    step = 2 * math.pi / period
    log_cut = math.log(relative) + log_size
    u = np.asarray(tuning.ends) / term.edge.width
    decay = _log_decay(term, theta, u)
    good = np.flatnonzero(decay - np.log(u) <= log_cut)
    if not good.size:
        return None
    cut, log_tail = float(u[good[0]]), float(decay[good[0]])
    number = math.ceil(cut / step) + 1
    if number > tuning.most_work // 100:
        return None
    built = _Pair.of(term, theta, step * number, math.log(tuning.node_tolerance / sum(n for _, n in term.light)))
    if built is None or number * built.size > tuning.most_work:
        return None
    return built.assemble(theta, step, number, log_tail, tilts, epsilon)


def _log_decay(term: JumpTerm, theta: float, u: Floats) -> Floats:
    """log of a bound of |G| / N beyond each u: |prod a^n - prod b^n| <= sum n |a - b| for |a|, |b| <= 1."""
    total, common = np.full_like(u, -math.inf), np.zeros_like(u)
    jumps = 0.0
    for (law, n), jump in zip(term.light, term.heavy, strict=True):
        if jump is None:
            common += n * law.log_decay(theta, u)
            continue
        light, heavy = (part.moment_table(np.array([theta])) for part in (law, jump[0]))
        ratio = float(heavy.moment[0] - light.moment[0])
        if not math.isfinite(ratio):  # beyond the tables
            return np.zeros_like(u)
        error = float(heavy.error[0] + light.error[0])
        jumps += n * math.log1p(math.exp(min(ratio - error, 700.0)))
        share = ratio + error - float(np.logaddexp(0.0, ratio + error))
        total = np.logaddexp(total, math.log(n) + share + jump[0].log_decay(theta, u))
    if not jumps > 0:  # outside double range
        return np.zeros_like(u)
    return np.asarray(np.minimum(total - math.log(-math.expm1(-jumps)) + 1e-9, 0.0) + common)


@dataclass(frozen=True, slots=True)
class _Pair:
    """For each law its count and the characteristic functions below the lower edge and between the edges."""

    rows: list[tuple[int, Characteristic, Characteristic | None]]

    @classmethod
    def of(cls, term: JumpTerm, theta: float, reach: float, log_tolerance: float) -> _Pair | None:
        rows = []
        for (below, n), jump in zip(term.light, term.heavy, strict=True):
            light = below.characteristic(theta, reach, log_tolerance)
            heavy = None if jump is None else jump[0].characteristic(theta, reach, -34.0)
            if light is None or (jump is not None and heavy is None):
                return None
            if heavy is not None and abs(heavy.log_moment - light.log_moment) > _MOST_RATIO:
                return None  # the quotient of their transforms would leave double range
            rows.append((n, light, heavy))
        return cls(rows)

    @property
    def size(self) -> int:
        return sum(light.size + (0 if heavy is None else heavy.size) for _, light, heavy in self.rows)

    def _jumps(self) -> float:
        """S = sum of n log(1 + M_h / M_b): the expected number of jumps of the tilted law, about."""
        return math.fsum(
            n * math.log1p(math.exp(heavy.log_moment - light.log_moment))
            for n, light, heavy in self.rows
            if heavy is not None
        )

    def assemble(
        self, theta: float, step: float, number: int, log_tail: float, tilts: MomentTable, epsilon: float
    ) -> Inversion | None:
        r"""G(u) / N at the nodes, G = prod a_i^n_i - prod b_i^n_i, a = b + h, N its value at u = 0.

        G has nonnegative coefficients in b and h, so errors e_b, e_h of b and h cost at most
        sum of n_i R_i (e_h + e_b D), with R_i the product of (\|b\| + \|h\|)^n with one factor i less, and
        D = 1 - prod (\|b\| / (\|b\| + \|h\|))^n, all taken at \|b\| + e_b, \|h\| + e_h and relative to prod M_a^n.
        """
        u = step * np.arange(number)
        log_b = np.zeros(number, dtype=np.complex128)
        jumps = np.zeros(number, dtype=np.complex128)
        log_modulus, log_kept, relative, drift = np.zeros((4, number))
        costs = []
        log_moment, centre = [], []
        for n, light, heavy in self.rows:
            minus_one, light_error = light.on_grid(step, number)
            log_phi = log1p_complex(minus_one)
            log_phi.real = np.maximum(log_phi.real, -300.0)  # where phi vanishes; the difference joins the error
            phi = np.exp(log_phi.real)
            light_error = light_error + 1e-130
            log_b += n * log_phi
            logs = np.abs(log_phi.real) + np.abs(log_phi.imag) + np.abs(minus_one)
            relative += n * (20 + len(self.rows)) * EPS * logs
            ratio = 0.0 if heavy is None else math.exp(heavy.log_moment - light.log_moment)
            share = 1.0 / (1.0 + ratio)
            b = share * (phi * (1 + light.log_moment_error) + light_error)
            b_error = share * (light_error + 1.01 * phi * light.log_moment_error)
            h, h_error = np.zeros(number), np.zeros(number)
            if heavy is not None:
                minus_one, heavy_error = heavy.on_grid(step, number)
                value = 1.0 + minus_one
                size = np.abs(value)
                turned = value * np.exp(1j * ((heavy.centre - light.centre) * u))
                rho = ratio * turned / phi * np.exp(-1j * log_phi.imag)
                grown = np.where(np.abs(rho) > 1e20, np.log(rho), log1p_complex(rho))  # the latter squares rho
                jumps += n * grown
                drift += n * 16 * EPS * np.abs(grown)
                blur = heavy.log_moment_error + 40 * EPS + 6 * EPS * u * (abs(heavy.centre) + abs(light.centre))
                blur = blur + 4 * EPS * (abs(heavy.log_moment) + abs(light.log_moment))
                h_error = ratio * share * (heavy_error + 1.01 * size * blur)
                h = ratio * share * size + h_error
            modulus = b + h
            log_modulus += n * np.log(np.maximum(modulus, 1e-150))
            log_kept += n * np.log1p(h / np.maximum(b, 1e-150))
            costs.append((n, modulus, b_error, h_error))
            log_moment.append(n * light.log_moment)
            centre.append(n * light.centre)
        total = self._jumps()
        norm = -math.expm1(-total)
        many = np.exp(log_b + jumps - total) - np.exp(log_b - total)
        few = np.exp(log_b - total) * np.expm1(np.where(jumps.real > 1.0, 0.0, jumps))
        g = np.where(jumps.real > 1.0, many, few) / norm
        d = -np.expm1(-log_kept)
        log_modulus = np.minimum(log_modulus, 0.7)  # it exceeds zero by rounding only
        size = np.abs(g)
        error = size * np.expm1(relative) + np.exp(log_modulus) * np.expm1(drift) / norm
        for n, modulus, b_error, h_error in costs:
            error += n * np.exp(log_modulus) / np.maximum(modulus, 1e-150) * (h_error + b_error * d) / norm
        error = 1.01 * error + 1e-140 / norm
        error = np.minimum(np.where(log_modulus < 0.7, error, math.inf), size + 1.0 + error[0])  # |G| <= N
        if not (np.isfinite(g).all() and np.isfinite(error).all()):
            return None
        z = theta + 1j * u
        kernel = 1.0 / (z * (z + 1))
        kernel[0] *= 0.5
        weight = np.abs(kernel)
        centre_size = sum(abs(x) for x in centre)
        logs = np.abs(log_b.real) + 2 * np.abs(log_b.imag) + 2 * np.abs(jumps) + total
        rounding = error + EPS * size * (number + 40 + logs + 4 * u * centre_size)
        log_n = [*log_moment, total, math.log(norm)]
        return Inversion(
            theta=theta,
            log_moment=math.fsum(log_n),
            log_moment_error=8 * EPS * (1 + sum(abs(x) for x in log_n)) + 16 * EPS * total * len(self.rows),
            centre=math.fsum(centre),
            step=step,
            terms=np.asarray(g * kernel, dtype=np.complex128),
            noise=float(step / math.pi * np.dot(weight, rounding)) * 1.02,
            phase_noise=float(step / math.pi * np.dot(weight * size, 4 * EPS * u)) * 1.02,
            tail=math.exp(log_tail) / (math.pi * float(u[-1])) * 1.02,
            tilts=tilts,
            saddle=epsilon,
        )
