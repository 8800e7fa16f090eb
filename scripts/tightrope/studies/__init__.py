"""Studies: what is measured of a variant on request, each declared in one file.

A study imports neither an engine nor the page: `measure.study` hands it the engine,
`report.sections.studies` shows its rows.

- `study`: what a study consists of
- `table`: all studies
- `idleness`: the first call after a pause
- `throughput`, `instances`: several instances at a time
- `traffic`, `scenarios`, `loadgen`: queries of MLCommons LoadGen, its tests, and the server
"""
