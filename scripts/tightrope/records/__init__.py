"""Records of raw measurements, and statistics across records.

- `record`: the base of all, rounds of several engines, and which of them count
- `accuracy`: predictions, and the paired change between two records
- `latency`: times, energy, and changes of machine speed between records
- `race`: the rounds of a race
- `family`: models timed in the same rounds
- `profile`: operators of a call, and causes of its time that were removed
- `training`: epochs of a training
"""
