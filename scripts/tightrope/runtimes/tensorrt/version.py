"""Check the version of TensorRT, and whether it can load a plan."""

from typing import Any

from tightrope.errors import WorkFailed

NEEDED = 11


def require_version(found: str) -> None:
    """Raise WorkFailed where TensorRT `found`, such as 11.4.0.106, is older than NEEDED."""
    if int(found.partition(".")[0]) < NEEDED:
        raise WorkFailed(
            f"TensorRT {found} found, {NEEDED} needed: since {NEEDED} the ONNX file alone decides "
            "every type, flags for precisions and calibrators are gone; install what envs/gpu.txt "
            "names",
            transient=False,
        )


def require_same(built: dict[str, str], here: dict[str, str], options: dict[str, Any]) -> None:
    """Raise WorkFailed where a plan was built by another TensorRT or for another GPU.

    Both dicts have `tensorrt` (version) and `gpu` (model); `options` may allow a difference.
    """
    allowed = {
        "tensorrt": options["version_compatible"],
        "gpu": options["hardware_compatibility"] != "none",
    }
    other = [name for name in allowed if built[name] != here[name] and not allowed[name]]
    if other:
        raise WorkFailed(
            f"the plan was built by TensorRT {built['tensorrt']} for {built['gpu']}, here is "
            f"TensorRT {here['tensorrt']} on {here['gpu']}: delete the engine's folder, run again",
            transient=False,
        )
