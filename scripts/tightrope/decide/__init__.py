"""Which variant to deploy, and why not the others.

`result`: what is known of a variant. `finalists`: who races, from the records. `race`: its winner,
and all times on the scale of its rounds. `recommend`: the choice at each shape. `bounds`, `goal`:
the choice for a goal within bounds. `quantize`: each engine against itself in float. `phrases`:
what is said of each reason.
"""
