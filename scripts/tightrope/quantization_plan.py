"""Which quantized variants are timed beside which variants in float of the same engine."""

from typing import Any

from tightrope.variants import QUANTIZED, UNQUANTIZED, Variant

Jobs = list[tuple[str, Variant]]
Pairs = list[tuple[str, Variant, Variant]]


def float_rivals(config: dict[str, Any], jobs: Jobs, baselines: dict[str, dict[str, str]]) -> Pairs:
    """Each quantized one of the jobs with every job of its model, device and engine in float.

    Without the baseline, beside which every variant is timed anyway; none at all where
    `compare_quantized` of the configuration is false.
    """
    if not config["compare_quantized"]:
        return []
    return [
        (model, variant, rival)
        for model, variant in jobs
        if variant.precision in QUANTIZED
        for name, rival in jobs
        if (name, *rival[:2]) == (model, *variant[:2])
        and rival.precision in UNQUANTIZED
        and str(rival) != baselines[model][variant.device]
    ]
