"""Studies: what is measured of a variant on request, each declared in one file.

`study` says what a study consists of, `table` lists all of them. A study imports neither an engine
nor the page: `measure.study` hands it the engine, `report.sections.studies` shows its rows.
"""
