"""Tightrope: how fast can a model go before its answers fall?"""

import gc
import sys

__version__ = "0.1.0"

# OpenVINO and NNCF would send what they are used for to a server, and keep an id of the user in
# HOME for it. They do so from forks of threads, in which a job can hang. To them the package that
# does it is not installed now.
sys.modules.setdefault("openvino_telemetry", None)

# PyTorch and transformers make a million objects that stay while they are imported: Python's
# default of 700 looks at them again and again, a tenth of the seconds (docs/results/decision.md).
gc.set_threshold(100_000, 50, 100)
