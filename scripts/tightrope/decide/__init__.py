"""Which variant to deploy, and why not the others; the race asks it who races.

- `result`: what is known of a variant; a reason
- `finalists`: who races, from the records
- `race`: who won, and all times on the scale of its rounds
- `recommend`: the choice at each shape
- `bounds`: costs, the candidates for a goal, the bounds that they miss
- `goal`: the choice for a goal
- `quantize`: each engine against itself in float
- `phrases`: the sentence of each reason
"""
