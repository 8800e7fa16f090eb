"""Write docs/summary.schema.json from the types of summary.json: `make schema`."""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

from tightrope.summary.document import json_schema  # noqa: E402

text = json.dumps(json_schema(), indent=1, sort_keys=True)
(ROOT / "docs/summary.schema.json").write_text(f"{text}\n")
