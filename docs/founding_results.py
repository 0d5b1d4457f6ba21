"""Write founding-results.md: every result of the founding papers, the call that gives it, its number and its test.

``python docs/founding_results.py`` evaluates every call and writes the page; tests/docs/test_founding_results.py does the
same and compares.
"""

# ruff: noqa: E501
from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).resolve().parent

HEAD = """# The founding papers' results, one by one

The library grew out of five documents: the alpha-divergence DP paper (000), the section on Renyi DP (001), lecture notes on
zCDP (002), Mironov's Renyi DP (003) and the Gaussian differential privacy transformation (004). Each of their 84 results
has a row: the call that a user types, the number that it gives, and the test. From F85 on stand the things that the papers
ask for beyond their own statements. Where a document is wrong the corrected statement is implemented, and the test shows
that the printed one fails. The page is written by `docs/founding_results.py`; a test evaluates every call.

The calls stand after these lines:

```python
import math
import dptally as dp
from dptally import gdp, release
from dptally.accounting import alpha, approximate, concentrated, gaussian, group, optimal, pure, renyi
from dptally.conversions import pure as from_pure
from dptally.conversions import edge
from dptally.divergences import finite, inequalities
from dptally.meaning import attacks, bayes, outcomes
```

| result | what | call | gives | test |
|---|---|---|---|---|
"""

GOLDEN = "accounting/test_frameworks_golden.py::test_"
LAWS = "accounting/test_frameworks_laws.py::test_"
GROUP = "accounting/test_group.py::test_"
CONVERT = "conversions/test_conversions.py::test_"
FINITE = "divergences/test_divergences.py::test_"
INEQUAL = "divergences/test_inequalities.py::test_"
GDP = "gdp/test_gdp_golden.py::test_"
ASKED = "test_papers_ask.py::test_"
LOSS = "accounting/test_loss.py::test_"
PAPERS = "papers/test_papers.py::test_"

ROWS: list[tuple[str, str, str]] = [
    ("pure DP, for every event", "dp.PureDP(0.5).epsilon(0.0)", "accounting/test_frameworks_contract.py::test_pure_refuses_what_it_cannot_say"),
    ('"approximate DP", printed as probabilistic DP', "dp.Gaussian(1.0).loss().exceeded_with(1e-5)", LOSS + "probabilistic_dp_of_gaussian_noise"),
    ("l1 and l2 sensitivity: the user's statement, scaled exactly", "dp.Gaussian(2.0, sensitivity=3.0).epsilon(1e-5) == dp.Gaussian(4.0, sensitivity=6.0).epsilon(1e-5)", "docs/test_founding_results.py::test_F3_a_sensitivity_is_a_scale"),
    ("Laplace mechanism, b = Delta/epsilon", "dp.Laplace(scale=2.0, sensitivity=1.0).epsilon(0.0)", "mechanisms/test_laplace.py::test_profile_contains_the_truth"),
    ("Gaussian mechanism, exact noise; the classic formula", "gaussian.sigma_for(0.5, 1e-5), gaussian.classic_sigma(0.5, 1e-5)", GOLDEN + "F5_the_printed_gaussian_calibration_is_unsafe_and_ours_is_not"),
    ("KL, maximal divergence", "finite.kl([0.75, 0.25], [0.25, 0.75]), finite.maximum([0.75, 0.25], [0.25, 0.75])", FINITE + "renyi_matches_high_precision_at_every_order"),
    ("Renyi divergence", "finite.renyi([0.75, 0.25], [0.25, 0.75], 2.0)", FINITE + "renyi_matches_high_precision_at_every_order"),
    ("its limits in the order", "dp.Laplace(1.0).renyi([1.0, 1.0001, 1e6, math.inf])", LAWS + "F8_F31_renyi_is_nondecreasing_in_the_order"),
    ("RDP: Gaussian noise for it, conversion", "renyi.sigma_for(10.0, 0.05), edge('renyi', 'approx').function(10.0, 0.05, 1e-5)", CONVERT + "F9_gaussian_noise_for_a_renyi_target"),
    ("zCDP: noise for it, conversion", "concentrated.sigma_for(0.02), concentrated.epsilon_from_rho(0.02, 1e-5, 'bun-steinke').value", GOLDEN + "F10_F46_F48_concentrated"),
    ("f-divergence", "finite.f_divergence([0.75, 0.25], [0.25, 0.75], lambda u: (u - 1) ** 2)", FINITE + "merging_outputs_never_increases_any_divergence"),
    ("alpha divergence", "finite.alpha([0.75, 0.25], [0.25, 0.75], 2.0)", FINITE + "alpha_keeps_its_relative_accuracy_where_the_two_nearly_agree"),
    ("(a, epsilon)-ADP is Renyi DP in other units", "alpha.to_renyi(10.0, 0.5), alpha.from_renyi(10.0, alpha.to_renyi(10.0, 0.5))", LAWS + "F13_alpha_divergence_is_renyi_in_other_units"),
    ("post-processing of ADP", "finite.alpha([0.6, 0.4], [0.5, 0.5], 3.0) <= finite.alpha([0.2, 0.4, 0.4], [0.3, 0.2, 0.5], 3.0)", FINITE + "merging_outputs_never_increases_any_divergence"),
    ("ADP composition", "alpha.compose(1.5, 0.3, 0.3), alpha.self_compose(10.0, 0.5, 2)", LAWS + "F15_alpha_composition_of_two"),
    ("Lemma 3: a triangle for power moments", "inequalities.power_moment_triangle(0.2, 0.3)", GROUP + "F16_F38_two_steps_of_a_path_hold_for_every_constant"),
    ("ADP group privacy, the proof's constant", "group.alpha(8.0, 0.001, size=4, constant='proof').value", GROUP + "F17_counterexample_of_the_errata"),
    ("ADP to DP", "alpha.epsilon_from_alpha(10.0, 0.5, 1e-5)", GOLDEN + "F12_F13_F15_F18_F21_alpha_divergence"),
    ("randomized response in ADP", "dp.RandomizedResponse(0.75).alpha_divergence(3.0)", FINITE + "f13_identity_of_alpha_and_renyi"),
    ("Laplace in ADP", "dp.Laplace(2.0).alpha_divergence(3.0)", "mechanisms/test_laplace.py::test_golden_alpha_divergence"),
    ("Gaussian in ADP", "dp.Gaussian(2.0).alpha_divergence(3.0)", "mechanisms/test_gaussian.py::test_golden_alpha_divergence"),
    ("Gaussian noise for an ADP target, Cor. 1", "alpha.sigma_for(2.0, 0.5)", "calibration/test_calibrate.py::test_renyi_zcdp_and_alpha_targets_agree_with_the_closed_forms"),
    ("Algorithm 1, corrected", "alpha.smallest_epsilon(count=50, sigma=100, delta=1e-5).value", GOLDEN + "F23_F27_F29_algorithm_1_corrected"),
    ("Algorithm 2, corrected", "alpha.smallest_sigma(count=1000, epsilon=1, delta=1e-5).value", GOLDEN + "F24_algorithm_2_corrected"),
    ("figures 1, 2 and 3: epsilon against the order, one query by randomized response, Laplace and Gaussian noise", "tuple(alpha.epsilon_from_alpha(20.0, m.alpha_divergence(20.0), 1e-5) for m in (dp.RandomizedResponse(0.75), dp.Laplace(1.0), dp.Gaussian(2.0)))", PAPERS + "the_adp_paper"),
    ("figures 4 and 5: the best orders of Algorithms 1 and 2", "alpha.smallest_epsilon(1000, 50, 1e-5, orders=range(2, 301)).order, alpha.smallest_sigma(1000, 5, 1e-5, orders=range(2, 301)).order", PAPERS + "the_adp_paper"),
    ("figure 6: 50 steps, sigma 100", "renyi.epsilon(50 * dp.Gaussian(100.0), 1e-15, 'mironov', orders=range(2, 301)).value", GOLDEN + "F27_F30_every_framework_stays_above_the_exact_gaussian"),
    ("figure 7: 300 steps; advanced composition of the stated steps", "approximate.epsilon(300 * dp.Gaussian(100.0), 1e-15, 'advanced').value", "accounting/test_stated_steps.py::test_the_numbers_of_the_alpha_divergence_figures"),
    ("figure 8: delta 1e-25", "renyi.epsilon(300 * dp.Gaussian(50.0), 1e-25, 'mironov', orders=range(2, 301)).value", GOLDEN + "F23_F27_F29_algorithm_1_corrected"),
    ('"20 % better than RDP": false, the exact epsilon is above', "0.8 * renyi.epsilon(50 * dp.Gaussian(100.0), 1e-15, 'mironov').value < (50 * dp.Gaussian(100.0)).epsilon_interval(1e-15).lower", GOLDEN + "F30_no_framework_has_the_claimed_twenty_percent"),
    ("Renyi divergence, orders 1 and inf", "dp.RandomizedResponse(0.75).renyi([1.0, math.inf])", LAWS + "F8_F31_renyi_is_nondecreasing_in_the_order"),
    ("(a, epsilon)-RDP as a guarantee", "dp.RenyiDP((10.0,), (0.1,)).epsilon(1e-5)", "accounting/test_two_points.py::test_golden_values"),
    ("bad outcomes", "outcomes.renyi(10, 0.1, 1e-6)", INEQUAL + "f64_worked_example_and_golden_probpres"),
    ("Bayes factors", "bayes.factor(1.0), bayes.moment(2, 0.5)", "meaning/test_bayes.py::test_golden_moment"),
    ("post-processing of RDP", "finite.renyi([0.6, 0.4], [0.5, 0.5], 3.0) <= finite.renyi([0.2, 0.4, 0.4], [0.3, 0.2, 0.5], 3.0)", FINITE + "merging_outputs_never_increases_any_divergence"),
    ("RDP composes", "(2 * dp.Laplace(1.0)).renyi(3.0) / dp.Laplace(1.0).renyi(3.0)", LAWS + "F36_F43_curves_add"),
    ("c-stable transformations", "group.stable(dp.PureDP(0.5), 2).epsilon(0.0)", ASKED + "F37_stable_transformations_by_name"),
    ("RDP group privacy", "group.renyi(8.0, 0.1, size=2).value, group.renyi(8.0, 0.1, size=2, constant='mironov').value", GROUP + "F17_F38_constants"),
    ("propose-test-release", "release.propose.pass_threshold(1.0, 1e-6)", "release/test_release_values.py::test_propose_test_release_is_exactly_as_private_as_it_says"),
    ("swap and add/remove adjacency", "dp.PoissonSampled(dp.Gaussian(1.0), 0.1, dp.REPLACE).epsilon(1e-5) > dp.PoissonSampled(dp.Gaussian(1.0), 0.1).epsilon(1e-5)", "laws/sampled/test_sampled_replace.py::test_replacing_tells_more_than_removing"),
    ("the privacy loss random variable", "(10 * dp.Laplace(5.0)).loss().cdf(0.5)", LOSS + "finite_laws_by_enumeration"),
    ("the Gaussian loss is N(rho, 2 rho)", "dp.Gaussian(2.0).loss().mean, dp.Gaussian(2.0).loss().variance", LOSS + "one_gaussian_and_many_are_normal"),
    ("losses add", "(9 * dp.Gaussian(2.0)).loss().mean", LAWS + "F36_F43_curves_add"),
    ("Chernoff bound of the loss", "concentrated.delta_from_rho(0.5, 3.0, 'bun-steinke').value", GOLDEN + "F41_F42_F44_the_gaussian_loss"),
    ("zCDP by moments", "dp.Gaussian(2.0).rho()", "accounting/test_concentrated.py::test_F45_every_order_lies_below_rho_times_order"),
    ("pure DP to zCDP: eps^2/2, sharp eps tanh(eps/2)", "edge('pure', 'zcdp').function(1.0)", GOLDEN + "F10_F46_F48_concentrated"),
    ("rho adds", "(100 * dp.Gaussian(20.0)).rho()", "accounting/test_concentrated.py::test_F47_rho_is_subadditive_and_monotone"),
    ("zCDP to DP, corrected", "concentrated.epsilon_from_rho(1.0, 1e-6, 'bun-steinke').value", GOLDEN + "F48_the_printed_zcdp_conversion_is_unsafe_and_ours_is_not"),
    ("moments and Renyi divergence are one", "bayes.moment(4.0, dp.Gaussian(2.0).renyi(4.0))", PAPERS + "the_zcdp_notes"),
    ("histogram mode, continuous domains", "release.mode_accuracy(n=1000, gap=40, epsilon=0.5, delta=1e-6).histogram_wrong", ASKED + "F93_histogram_mode_against_propose_test_release"),
    ("definitions; Laplace and Gaussian mechanisms", "dp.Laplace(1.0).delta(0.5), dp.Gaussian(1.0).delta(0.5)", "mechanisms/test_gaussian.py::test_golden_composition"),
    ("basic and advanced composition", "approximate.epsilon(50 * dp.PureDP(0.2), 0.01, 'basic').value, approximate.epsilon(50 * dp.PureDP(0.2), 0.01, 'advanced').value", GOLDEN + "F52_advanced_composition"),
    ("Table I: what Renyi DP shares with DP", "outcomes.renyi(10, 0.1, 0.5)", PAPERS + "mironovs_paper"),
    ("RDP to DP, Prop. 3", "renyi.epsilon(50 * dp.PureDP(0.2), 0.01, 'mironov').value", CONVERT + "F54_renyi_to_approx_against_the_formula"),
    ("Lemma 1, and the exact divergence", "from_pure.pure_to_renyi_mironov(0.1, 4.0), from_pure.pure_to_renyi(0.1, 4.0)", CONVERT + "F55_F58_pure_to_renyi_is_exact_and_below_the_generic_bounds"),
    ("Prop. 4", "from_pure.pure_ratio_bound(0.05, 100, 0.001)", CONVERT + "F56_proposition_4_holds_for_randomized_response"),
    ("Cor. 1 with its condition", "from_pure.pure_to_approx_mironov(0.2, 50, 0.01)", CONVERT + "F57_mironov_corollary_1"),
    ("Renyi curve of randomized response", "dp.RandomizedResponse(0.6).renyi(10.0)", CONVERT + "F55_F58_pure_to_renyi_is_exact_and_below_the_generic_bounds"),
    ("Renyi curve of Laplace noise", "dp.Laplace(2.0).renyi(10.0)", "accounting/test_safe_side.py::test_divergences_of_plans"),
    ("Renyi curve of Gaussian noise", "dp.Gaussian(3.0).renyi(10.0)", "accounting/test_safe_side.py::test_divergences_of_plans"),
    ("figure 1: Renyi curves", "dp.RandomizedResponse(0.55).renyi(5.0)", GOLDEN + "F61_figure_1_curves_at_the_papers_parameters"),
    ("figure 2: four bounds for one event", "outcomes.largest_ratio(50 * dp.RandomizedResponse(0.51), 1e-3).ratio", GOLDEN + "F62_F65_bounds_on_the_ratio_of_probabilities"),
    ("Bayes and Markov, corrected", "bayes.factor_tail(1.5, 0.75, 10)", "meaning/test_bayes.py::test_golden_markov_corrected"),
    ("the worked numbers of Sec. VII", "outcomes.renyi(10, 0.1, 0.001)", INEQUAL + "f64_worked_example_and_golden_probpres"),
    ("figure 3: 13 orders", "outcomes.largest_ratio(20 * (dp.RandomizedResponse(0.52) + dp.Laplace(20.0) + dp.Gaussian(10.0)), 0.1, renyi.MIRONOV_ORDERS).ratio", GOLDEN + "F62_F65_bounds_on_the_ratio_of_probabilities"),
    ("properties of Renyi divergence, weak triangle", "inequalities.weak_triangle(2.0, 2.0, 0.1, 0.2), inequalities.equal_order(2.0)", GROUP + "F66_equal_orders"),
    ("trade-off functions, GDP composition", "dp.GaussianDP(1.0).tradeoff(0.05), gaussian.mu(dp.GaussianDP(3.0) + dp.GaussianDP(4.0))", "accounting/test_tradeoff.py::test_single_gaussian_is_exact_to_rounding"),
    ("the three running examples", "gdp.laplace(0.5).delta(1.0), gdp.noisy_sgd(2, 1, 2).delta(1.0), gdp.icea(20, 4).delta(2.0)", GDP + "transform_of_laplace"),
    ("Theorem 2.1", "approximate.implied_delta(1.0, 0.0, 0.5), approximate.implied_epsilon(10.0, 0.0, 0.1)", CONVERT + "F69_theorem_2_1_both_ways"),
    ("refined profiles", "gdp.refined(gdp.noisy_sgd(2, 1, 2)).delta(0.0)", GDP + "refined_profiles"),
    ("delta_mu", "gaussian.delta_mu(1.0, 1.0)", GOLDEN + "F71_delta_mu"),
    ("Laplace profile", "dp.Laplace(0.5).delta(1.0)", "mechanisms/test_laplace.py::test_golden_profile"),
    ("head and tail, mu_t", "gdp.identify(gdp.refined(gdp.noisy_sgd(2, 1, 2))).tail_limit", GDP + "tail_limits"),
    ("the transformation and its supremum", "gdp.transform(dp.Laplace(0.5), 1.0), gdp.measure(dp.Laplace(0.5)).mu", GDP + "laplace_and_pure_in_closed_form"),
    ("its derivative", "(gdp.transform(dp.Laplace(0.5), 1.001).lower - gdp.transform(dp.Laplace(0.5), 1.0).lower) / 0.001 < math.sqrt(math.pi / 2)", "numerics/test_normal.py::test_golden_slope_of_mu"),
    ("staircase bounds, Algorithm 1, corrected", "gdp.algorithm_one(dp.Laplace(5.0), head=0.2)", "gdp/test_gdp_algorithms.py::test_the_printed_algorithm_is_unsound_and_the_corrected_one_is_not"),
    ("delta_6(100)", "gaussian.delta_mu(6.0, 100.0)", PAPERS + "the_gdpt_paper"),
    ("clip and rectify, Theorem 4.4", "gdp.rectify(dp.ApproxDP(1.0, 1e-6), low=0.0, high=5.0, head=2.0).scale", "gdp/test_gdp_contract.py::test_rectified_heads"),
    ("Poisson subsampling of a profile", "gdp.measure(dp.PoissonSampled(dp.Laplace(0.5), 0.5)).mu", PAPERS + "the_gdpt_paper"),
    ("pure DP to GDP, Theorem 5.1; Laplace", "edge('pure', 'gdp').function(1.0), gaussian.mu(dp.Laplace(1.0))", CONVERT + "F80_pure_to_gdp"),
    ("Sec. 5.1: G of Laplace noise falls", "gdp.transform(dp.Laplace(1.0), 0.3).upper < gdp.transform(dp.Laplace(1.0), 0.0).lower", "docs/test_founding_results.py::test_F81_the_derivative_of_section_5_1"),
    ("the printed values of mu", "gdp.measure(dp.PureDP(0.2)).mu, gdp.measure(dp.Laplace(5.0)).mu", PAPERS + "the_gdpt_paper"),
    ("Table 1", "optimal.composed_epsilon(0.2, 0.0, 50, 1e-4)", GOLDEN + "F83_the_printed_optimum_5_28_is_too_small"),
    ("figures 1, 2 and 3 of 004: profiles, staircase bounds, compositions", "gdp.refined(gdp.icea(20, 4)).delta(0.0), gdp.staircase(dp.Laplace(0.5), 2.0, 20).upper.max(), gdp.summary(50 * dp.PureDP(0.2)).mu", PAPERS + "the_gdpt_paper"),
    ("sampling without replacement, of a profile", "gdp.without_replacement(gdp.laplace(0.5), batch=10, size=100).delta(0.0)", ASKED + "F85_sampling_without_replacement_by_enumeration"),
    ("sampling with replacement, a bound of a profile", "gdp.with_replacement(lambda j: gdp.laplace(0.5, j), draws=10, size=100).delta(0.0)", ASKED + "F86_sampling_with_replacement_is_a_bound"),
    ("noise for a Renyi, zCDP, ADP or mu target", "dp.calibrate(lambda s: dp.Gaussian(s), rho=0.02), dp.calibrate(lambda s: dp.Gaussian(s), renyi=(10, 0.05)), dp.calibrate(lambda s: dp.Gaussian(s), alpha=(2, 0.5)), dp.calibrate(lambda s: dp.Gaussian(s), mu=0.5)", "calibration/test_calibrate.py::test_renyi_zcdp_and_alpha_targets_agree_with_the_closed_forms"),
    ("the loss of a whole plan", "dp.dpsgd(1.0, 0.01, 100).loss().quantile(0.99), dp.dpsgd(1.0, 0.01, 100).loss('add').tail(0.3), dp.dpsgd(1.0, 0.01, 100).loss().mean, dp.dpsgd(1.0, 0.01, 100).loss().variance", LOSS + "samples_and_density_follow_the_certified_distribution"),
    ("the best delta for one event, Mironov's figure 2", "outcomes.largest_ratio_approx(50 * dp.RandomizedResponse(0.51), 1e-3, 'advanced')", ASKED + "F89_the_best_delta_for_one_event"),
    ("mu_GDP, rounded both ways", "gaussian.mu_interval(1.0, 1e-5)", ASKED + "F90_mu_both_ways"),
    ("sigma = A/eps sqrt(log(B/delta)), in general", "gdp.root_log(a=3.0, b=1.25, sigma=4.0).delta(1.0)", ASKED + "F91_the_general_root_log_curve"),
    ("groups under every framework", "(10 * dp.Gaussian(20.0)).group(4).epsilon(1e-6), (10 * dp.Gaussian(20.0)).group(4).rho()", "mechanisms/test_plan_groups.py::test_every_kind_answers_under_every_framework"),
    ("histogram mode against propose-test-release", "release.mode_accuracy(n=1000, gap=40, epsilon=0.5, delta=1e-6).better", ASKED + "F93_histogram_mode_against_propose_test_release"),
    ("bad outcomes and attacks of a plan", "outcomes.of_plan(dp.dpsgd(1.0, 0.01, 100), 0.01), attacks.accuracy(dp.dpsgd(1.0, 0.01, 100)), bayes.after_alarm(dp.dpsgd(1.0, 0.01, 100), 0.5, 0.01)", "meaning/test_outcomes.py::test_of_plan_meets_the_guarantee_it_was_declared_with"),
    ("one Renyi order, converted at its optimum", "edge('renyi', 'approx').function(10.0, 0.1, 1e-5)", "accounting/test_two_points.py::test_some_pair_attains_the_bound"),
    ("a private median by its local sensitivity, Remark 7.2", "release.stable_median.mechanism(lower=0, upper=1000, local_sensitivity=2, epsilon=1.0, delta=1e-6, scale=2, adjacency=dp.ADD_REMOVE).epsilon(1e-5)", "release/test_release_stable.py::test_the_distance_of_the_median"),
    ("a private mean by its local sensitivity, Remark 7.2", "release.stable_mean.mechanism(lower=0, upper=1000, local_sensitivity=2, epsilon=1.0, delta=1e-6, scale=2, adjacency=dp.REPLACE, trim=5).epsilon(1e-5)", "release/test_release_stable.py::test_the_distance_of_the_mean"),
    ("probabilistic (epsilon, delta) of a plan, Def. 2 of 000", "dp.dpsgd(1.0, 0.01, 100).loss().exceeded_with(1e-5)", LOSS + "probabilistic_dp_of_gaussian_noise"),
    ("appendix E.1: Laplace noise needs less than pure DP", "gdp.measure(dp.Laplace(1.0)).mu, gdp.measure(dp.PureDP(1.0)).mu", PAPERS + "the_gdpt_paper"),
    ("appendix E.2: sampling lowers mu", "gdp.rate_for(dp.Laplace(0.5), 0.5).rate", "gdp/test_gdp_contract.py::test_rates"),
    ("Theorem 2.1 of a declared guarantee", "dp.ApproxDP(1.0, 1e-6).delta(0.5), dp.convert(dp.ApproxDP(10.0, 0.0), 'approx', delta=0.1).epsilon(0.1)", GOLDEN + "F69_theorem_2_1"),
    ("Algorithms 1 and 2 for any plan", "alpha.epsilon(20 * dp.Laplace(10.0), 1e-6).value, alpha.smallest_noise(lambda b: 20 * dp.Laplace(b), 2.0, 1e-6)", GOLDEN + "F23_F24_the_algorithms_of_any_plan"),
    ("the weak triangle of a plan: two records", "group.two_records(dp.Gaussian(2.0), 2.0).value", GROUP + "F66_two_records_by_the_weak_triangle_of_a_plan"),
    ("optimal composition of a plan", "optimal.epsilon(50 * dp.PureDP(0.2), 0.01).value", GOLDEN + "F52_F83_optimal_composition"),
    ("Bayes factors of a plan", "bayes.factor_exceeds(dp.Gaussian(1.0), 10.0)", "meaning/test_bayes.py::test_the_factor_of_a_plan_by_its_profile"),
    ("(inf, epsilon)-Renyi DP is epsilon-DP", "dp.convert(dp.RenyiDP((math.inf,), (1.0,)), 'gaussian').mu, dp.convert(dp.RenyiDP((math.inf,), (1.0,)), 'zcdp').rho()", "mechanisms/test_renyi_only.py::test_order_infinity_answers_as_pure_dp_does"),
    ("one Renyi order at large delta: both directions", "edge('renyi', 'approx', 'delta').function(10.0, 1.0, 0.0)", "accounting/test_response.py::test_the_edge_is_the_optimum_over_all_pairs"),
    ("mu of a guarantee that bounds Renyi divergences only", "gdp.measure(dp.ZCDP(0.5)).mu", "gdp/test_gdp_contract.py::test_renyi_only_guarantees_with_a_gaussian_tail_are_measured"),
]  # fmt: skip


def namespace() -> dict[str, object]:
    """What the lines at the top of the page define."""
    space: dict[str, object] = {}
    exec(HEAD.split("```python\n")[1].split("```")[0], space)
    return space


def shown(value: object) -> str:
    """A number as the page prints it: nine digits; both ends of an interval."""
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return ", ".join(map(shown, value))
    if hasattr(value, "lower") and hasattr(value, "upper"):
        return f"[{value.lower:.9g}, {value.upper:.9g}]"
    if hasattr(value, "tolist"):
        return ", ".join(map(shown, value.tolist())) if hasattr(value, "__len__") else shown(value.tolist())
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def page() -> str:
    space = namespace()
    lines = []
    for number, (what, call, test) in enumerate(ROWS, 1):
        value = shown(eval(call, space))
        lines.append(f"| F{number} | {what} | `{call}` | {value} | `tests/{test}` |")
    return HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    (HERE / "founding-results.md").write_text(page(), encoding="utf-8")
