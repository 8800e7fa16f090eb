"""Rounds of several engines whose times are planted."""

from pathlib import Path

from played_engines import Played, asked, nowhere
from tightrope.machine.interference import MAX_FOREIGN_CORES
from tightrope.measure import rounds
from tightrope.measure.rounds import rounds_of
from tiny_model import LIMITS


def test_each_round_has_a_block_of_each_engine_loaded_once_for_all_inputs(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    engines = [Played(journal, name, one, inputs=3) for name, one in (("a", 0.02), ("b", 0.05))]
    found = list(rounds_of(engines, LIMITS, nowhere(), "timing", [0, 2]))
    assert [len(one) for one in found] == [rounds.ROUNDS] * 2
    for one in (one for inputs in found for one in inputs):
        assert (one.blocks_s, one.foreign_cores) == ([[0.02] * 5, [0.05] * 2], 0.0)
    assert [one.name for one in asked(journal, "load")] == ["a", "b"]
    blocks = asked(journal, "block")
    assert [one.arguments[0] for one in blocks] == [0] * 48 + [2] * 48
    assert {one.name for one in blocks[::2]} == {"a", "b"}, "in random order"


def test_disturbed_rounds_are_repeated_while_time_may_be_lost(tmp_path, monkeypatch) -> None:
    """One engine uses ever less, as if other programs used more."""
    monkeypatch.setattr(rounds, "ROUNDS", 6)
    engines = [Played(tmp_path / "a", "a", 0.02, used_s=-1e6), Played(tmp_path / "b", "b", 0.02)]
    machine = nowhere(0.3)
    (found,) = rounds_of(engines, LIMITS, machine, "timing")
    assert len(found) > 6
    assert min(one.foreign_cores for one in found) > MAX_FOREIGN_CORES
    assert machine.left_s == 0
