"""Tightrope: find the fastest engine for a model within an accuracy budget."""

import gc
import sys

__version__ = "0.1.0"

# OpenVINO and NNCF send usage telemetry to a server, and keep a user id for it in HOME. They fork
# processes from threads for it, which can hang a job. This makes the package look uninstalled.
sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]  # stub lacks None

# Importing PyTorch and transformers creates a million long-lived objects. With Python's default
# threshold of 700, garbage collection takes a tenth of import and load (docs/results/decision.md).
gc.set_threshold(100_000, 50, 100)
