"""From records to summary.json and summary.csv; measures nothing and needs no engine.

- `summarize`: writes both
- `document`: the whole as a type, reading it, what of it failed or was disturbed
- `runs`: the files of a run, read with checks; hosts
- `results`, `accuracy`: the latency and the answers of a variant
- `models`: a model with its data
- `profile`: where the time of a call goes, and what explains a difference
- `pairs`: causes that were removed, activations, trainings
- `families`: a model and those that start from it
"""
