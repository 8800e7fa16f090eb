"""Measure the latency, accuracy, traffic and throughput of engines.

- `run`: what jobs that measure have in common: settings, facts of the run, whether it can be timed
- `accuracy`: every prediction of a variant, and whether it has collapsed
- `latency`: a variant paired with its baseline
- `rounds`: the loop that times engines side by side
- `timed_engine`: one engine in a child process, and how its calls are timed
- `race`, `race_rounds`: the finalists of a model, timed together
- `family`: a model and those that start from it
- `study`: hands an engine to a study
- `profile`, `profile_inputs`, `model_work`: where the time of a call goes, and what bounds it
- `causes`: without what holds a variant back
- `structures`, `structure_models`, `structure_choice`: smaller models, and the one for a target
"""
