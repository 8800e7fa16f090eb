"""From the configuration to jobs: the only package that reads the configuration.

- `config_checks`, `model_checks`: what must hold between keys, and on this machine
- `plan`: all jobs of a run; `variants`, `families`, `pruning`, `distillation`, `studies`: theirs
- `jobs`, `job`: a row per rule, and what follows from the wildcards of a job
- `inputs`, `job_inputs`, `job_params`, `shapes`: files and settings of jobs
- `hosts`, `location`: on which machine, and where files are
- `begin`, `continuing`, `announce`: the begin of a run, its way to the report, what it says first
- `disturbed_records`, `reports`: what is measured again, reports per configuration
"""
