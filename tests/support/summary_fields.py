"""Fields of entries of summary.json that several tests expect."""

ACCURACY_FIELDS = {
    "top1",
    "low",
    "high",
    "samples",
    "delta",
    "delta_low",
    "delta_high",
    "p_value",
    "flips",
    "verdict",
    "samples_needed",
    "agreement",
    "gained",
    "lost",
    "logit_error",
    "kl",
    "detectable",
    "large_enough",
    "flipped",
}
