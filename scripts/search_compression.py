"""Search for the smallest model within an accuracy budget."""

from tightrope.jobs.job import current_job
from tightrope.measure.compression.search import run_search

run_search(current_job(globals()))
