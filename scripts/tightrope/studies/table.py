"""All studies, by name: the sections of the configuration and of summary.json."""

from tightrope.studies.idleness import STUDY as IDLENESS
from tightrope.studies.throughput import STUDY as THROUGHPUT
from tightrope.studies.traffic import STUDY as TRAFFIC

STUDIES = {one.name: one for one in (TRAFFIC, THROUGHPUT, IDLENESS)}
