"""A cascade and each of its models alone under traffic: LoadGen sends, dynamic batching serves."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tightrope.engines.load import load_engine
from tightrope.inputs.arrays import length
from tightrope.machine.quiet import QuietMachine
from tightrope.measure.cascade.engine import Alone, Cascade, Reply
from tightrope.measure.cascade.served_engine import Pairs, Serve
from tightrope.measure.traffic.bench import Bench
from tightrope.measure.traffic.measure import IMAGE_BYTES, ready_samples
from tightrope.measure.traffic.scenarios import measure_scenarios
from tightrope.records.cascade import BOTH, LARGE, NAMES, SMALL, CascadeRecord


def serve_traffic(
    record: CascadeRecord,
    engines: Sequence[Path],
    examples: Pairs,
    plan: dict[str, Any],
    *,
    classes: int,
    machine: QuietMachine,
) -> tuple[dict[str, Any], float, dict[str, float]]:
    """Run all tests of the three in turn, in the child, where both engines are loaded once.

    The cascade has the threshold of the record. `plan` are the settings of traffic. Batches are
    padded to their longest text; of images as many are sent as fit, decoded, in memory. Returns
    also what the `machine` has lost to other load by then.
    """
    assert record.threshold is not None
    small, large = (load_engine(one, threads=record.threads)[0] for one in engines)
    served: dict[int, Serve] = {
        SMALL: Alone(small, 0, escalated=False),
        LARGE: Alone(large, 1, escalated=True),
        BOTH: Cascade(small, large, record.threshold),
    }
    ready = Pairs(*(ready_samples(rows, image_bytes=IMAGE_BYTES // 2) for rows in examples.encoded))
    lengths = [length(row) for row in ready.encoded[1]]
    padded: list[int | None] = [None] * len(ready)
    with TemporaryDirectory() as folder:
        logs = Path(folder)
        benches = [
            Bench(Answer(one, ready), lengths, padded, plan, classes, logs, NAMES[place], machine)
            for place, one in served.items()
        ]
        tests, _ = measure_scenarios(benches, reference=NAMES[LARGE])
    found = {"plan": plan, "samples": len(ready), "tests": tests, "reason": None}
    return found, machine.lost_s, machine.busiest


class Answer:
    """What LoadGen's queries ask: `serve` on a batch of `examples`, padded to the longest."""

    def __init__(self, serve: Serve, examples: Pairs) -> None:
        self.serve = serve
        self.examples = examples

    def __call__(self, indices: Sequence[int], _: int | None) -> Any:
        """Return the logits of a batch, float32 [batch, classes]."""
        reply: Reply = self.serve([self.examples[index] for index in indices])
        return reply.logits
