"""What a checker must refuse: every line that ends in "# wrong", and no other. Run by test_typing.py."""

from __future__ import annotations

import dptally as dp
from dptally import gdp, meaning, mechanisms

dp.Gausian(1.0)  # wrong
mechanisms.Gausian(1.0)  # wrong
gdp.mesure(dp.Gaussian(1.0))  # wrong
meaning.atacks  # wrong
number: int = dp.Gaussian(1.0)  # wrong
dp.Gaussian("a", 3, 4)  # wrong
dp.Gaussian(sgima=1.0)  # wrong
dp.PoissonSampled(0.01, dp.Gaussian(1.0))  # wrong
text: str = dp.Gaussian(1.0).epsilon(1e-6)  # wrong
dp.Gaussian(1.0).epsilon("small")  # wrong
dp.dpsgd(sample_rate=0.01)  # wrong
dp.Gaussian(1.0) + 1.5  # wrong
dp.compare(dp.Gaussian(1.0), 1e-6).bests  # wrong
dp.Gaussian(1.0).sigma = 2.0  # wrong
fine = dp.Gaussian(1.0) + dp.Laplace(2.0)
