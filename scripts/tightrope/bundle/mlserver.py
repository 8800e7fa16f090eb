"""What MLServer needs besides a bundle to serve its folder: a program, settings, requirements."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tightrope.artifacts.files import json_bytes
from tightrope.bundle.requirements import imported, requirements_txt
from tightrope.signature import IMAGE

DISTRIBUTION, VERSION = "mlserver", "1.7.1"
MODULE = "serving"
# One engine uses all threads that it was measured with: no processes besides MLServer's own. Ports
# and addresses are not here, as the environment could not change them then.
SETTINGS = {"debug": False, "parallel_workers": 0}
# MLServer's adaptive batching splits answers by the shapes that clients state: one with another
# shape than its data would get the answers of another client.
BATCHING = {"max_batch_size": 0, "max_batch_time": 0}


def mlserver_files(
    name: str, facts: Mapping[str, Any], packages: Mapping[str, str], program: Path
) -> dict[str, bytes | Path]:
    """Return the files by their names in the bundle `name`, requirements.txt in place of its own.

    `facts` are those of bundle.json, `packages` the versions of the plain bundle's requirements.
    """
    pinned = {one: packages[one] for one in imported(facts["engine"], facts["task"])}
    # no closure: MLServer needs other versions, such as of protobuf, than are installed here
    pinned[DISTRIBUTION] = VERSION
    return {
        f"{MODULE}.py": program,
        "model-settings.json": json_bytes(model_settings(name, facts)),
        "settings.json": json_bytes(SETTINGS),
        "requirements.txt": requirements_txt(pinned).encode(),
    }


def model_settings(name: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return model-settings.json; the model has the name of its folder, as MLServer expects."""
    images = facts["task"] == IMAGE
    element = ("image", "base64") if images else ("text", "str")
    return {
        "name": name,
        "implementation": f"{MODULE}.Bundle",
        "platform": facts["engine"],
        "inputs": [tensor(element[0], "BYTES", element[1])],
        "outputs": [tensor("label", "BYTES", "str"), tensor("score", "FP32", "np")],
        **BATCHING,
    }


def tensor(name: str, datatype: str, content_type: str) -> dict[str, Any]:
    """Return the metadata of a tensor with a row per element of the request."""
    return {
        "name": name,
        "datatype": datatype,
        "shape": [-1, 1],
        "parameters": {"content_type": content_type},
    }
