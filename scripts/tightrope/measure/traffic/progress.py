"""Progress of all tests of a job, as a bar in its log that the terminal shows."""

import time

from tqdm import tqdm

# seconds between two updates; each update takes a moment of a test
UPDATE_SECONDS = 5.0
# share of the bar that tests can fill: some take longer than expected, and a full bar is not shown
MOST = 0.99


class Progress:
    """Bar over the seconds that all tests are expected to take.

    Each test calls `begin`, then `tell` often, and `end`.
    """

    def __init__(self, expected_s: float, *, update_seconds: float = UPDATE_SECONDS) -> None:
        self.total = expected_s
        self.update_seconds = update_seconds
        self.bar = tqdm(total=max(1, round(expected_s)), desc="serving", unit="s")
        self.done = self.expected = 0.0
        self.began = self.told = time.monotonic()

    def expect(self, seconds: float) -> None:
        """Count tests that were not expected, or with negative seconds tests that are omitted."""
        self.total = max(self.done, self.total + seconds)

    def begin(self, what: str, expected_s: float) -> None:
        """Show that a test has begun."""
        self.expected = expected_s
        self.began = time.monotonic()
        self.bar.set_description(what, refresh=False)
        self.show(self.done)

    def tell(self) -> None:
        """Show the time that the test has taken, at limited intervals."""
        now = time.monotonic()
        if now - self.told >= self.update_seconds:
            self.show(self.done + min(self.expected, now - self.began))

    def end(self) -> None:
        """Count the test as done."""
        self.done += self.expected
        self.expected = 0.0

    def close(self) -> None:
        """Fill the bar."""
        self.bar.n = max(1, round(self.total))
        self.bar.close()

    def show(self, done: float) -> None:
        """Redraw the bar."""
        self.told = time.monotonic()
        self.bar.total = max(1, round(self.total))
        self.bar.n = int(min(done, MOST * self.total))
        self.bar.refresh()
