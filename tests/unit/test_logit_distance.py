"""Distances of logits, against numbers by hand and SciPy."""

import math

import numpy as np
import pytest
from scipy import special, stats
from tightrope.logit_distance import log_softmax, mean_divergence, relative_error


def test_the_divergence_is_that_by_hand_and_of_scipy() -> None:
    # softmax of (ln 3, 0) is (3/4, 1/4), of equal logits (1/2, 1/2)
    baseline, own = [[math.log(3), 0.0]], [[0.0, 0.0]]
    there, back = 0.75 * math.log(1.5) + 0.25 * math.log(0.5), math.log(4 / 3) / 2
    assert mean_divergence(baseline, own) == pytest.approx(there)
    assert mean_divergence(own, baseline) == pytest.approx(back)
    # of many examples their mean
    draw = np.random.default_rng(5)
    baseline, own = draw.normal(scale=3, size=(2, 40, 5))
    pairs = zip(special.softmax(baseline, 1), special.softmax(own, 1), strict=True)
    expected = np.mean([stats.entropy(theirs, ours) for theirs, ours in pairs])
    assert mean_divergence(baseline.tolist(), own.tolist()) == pytest.approx(expected, rel=1e-9)
    # the same number more in every class changes no probability
    baseline = np.random.default_rng(6).normal(size=(30, 3))
    own = (baseline + 0.25).tolist()
    assert 0 <= mean_divergence(baseline.tolist(), own) < 1e-15
    assert relative_error(own, baseline.tolist()) > 0.2
    assert log_softmax([1000.0, 1000.0]) == pytest.approx([-math.log(2)] * 2)
    assert log_softmax([-1000.0, 0.0]) == [-1000.0, 0.0]


def test_the_error_of_logits_is_relative_to_their_spread_about_each_examples_mean() -> None:
    # means 2 and 10, deviations 1, 1, 3, 3: mean square 5; errors 0, 1, 2, 0: mean square 1.25
    baseline, own = [[1.0, 3.0], [7.0, 13.0]], [[1.0, 4.0], [5.0, 13.0]]
    assert relative_error(own, baseline) == pytest.approx(math.sqrt(1.25 / 5))
    assert relative_error(baseline, baseline) == 0
    # without any spread there is none
    assert relative_error([[1.0, 2.0]], [[3.0, 3.0]]) is None
    for statistic in (relative_error, mean_divergence):
        with pytest.raises(ValueError, match="zip"):
            statistic([[1.0, 2.0]], baseline)
