"""This bundle as a model of MLServer: see model-settings.json."""

import asyncio
import importlib
import json
import sys
from pathlib import Path

import numpy as np
from mlserver import MLModel
from mlserver.codecs import Base64Codec, NumpyCodec, StringCodec
from mlserver.errors import InferenceError, MLServerError
from mlserver.types import Datatype, InferenceResponse
from mlserver.utils import get_model_uri

OWN = "predict", "bundled"
CODECS = {"str": StringCodec, "base64": Base64Codec}


class Bundle(MLModel):
    """Answers one BYTES input, texts or image files, with `label` and `score` of each."""

    async def load(self):
        """Load the engine of the folder in which model-settings.json is."""
        folder = Path(await get_model_uri(self.settings))
        program = import_predict(folder)
        facts = json.loads((folder / "bundle.json").read_text())
        self.batches = program.load_request(folder, facts)
        self.answer = await asyncio.to_thread(program.load, folder)
        return True

    async def predict(self, payload):
        """Answer a request; meanwhile others are received."""
        elements = decoded(payload, self.inputs[0])
        wanted = requested(payload, [one.name for one in self.outputs])
        answers = await asyncio.to_thread(self.answers, elements)
        scores = np.array([[one["score"]] for one in answers], np.float32)
        outputs = {
            "label": StringCodec.encode_output("label", [one["label"] for one in answers]),
            "score": NumpyCodec.encode_output("score", scores),
        }
        return InferenceResponse(
            model_name=self.name,
            model_version=self.version,
            outputs=[outputs[name] for name in wanted],
        )

    def answers(self, elements):
        """Return the answers of the engine; raise InferenceError for what it cannot read."""
        try:
            return self.answer(elements)
        except Exception:
            self.require_readable(elements)
            raise

    def require_readable(self, elements):
        """Raise InferenceError for the first element that cannot be made an input of the engine."""
        for index, element in enumerate(elements):
            try:
                list(self.batches([element]))
            except Exception as error:  # decoders of images raise arbitrary errors
                reason = " ".join(str(error).split()) or type(error).__name__
                raise InferenceError(f"element {index} cannot be read: {reason}") from None

    async def unload(self):
        """Let the engine go."""
        self.answer = self.batches = None
        return True


def import_predict(folder):
    """Return the module predict of a folder.

    It does not stay in `sys.modules`, nor does what it imports of its folder: another folder of the
    same repository has modules of the same names.
    """
    others = taken()
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module("predict")
    except ModuleNotFoundError as error:
        what = f"{error.name} is missing: pip install -r {folder / 'requirements.txt'}"
        raise MLServerError(what) from None
    finally:
        sys.path.remove(str(folder))
        taken()
        sys.modules.update(others)


def taken():
    """Remove the modules with names of a bundle from `sys.modules`, and return them."""
    names = [name for name in sys.modules if name.partition(".")[0] in OWN]
    return {name: sys.modules.pop(name) for name in names}


def decoded(payload, expected):
    """Return the texts, or the bytes of image files; raise InferenceError for other requests."""
    names = [one.name for one in payload.inputs]
    if names != [expected.name]:
        raise InferenceError(f"one input '{expected.name}' is expected, not {names}")
    tensor, kind = payload.inputs[0], expected.parameters.content_type
    if Datatype(tensor.datatype) != Datatype.BYTES:
        raise InferenceError(f"datatype BYTES is expected, not {Datatype(tensor.datatype).value}")
    stated = tensor.parameters and tensor.parameters.content_type
    if stated not in (None, kind):
        raise InferenceError(f"content_type '{kind}' is expected, not '{stated}'")
    elements = tensor.data.root
    if not isinstance(elements, list) or not all(isinstance(one, (str, bytes)) for one in elements):
        raise InferenceError("data is expected to be a list of strings")
    if not elements:
        raise InferenceError("data is empty")
    if tensor.shape not in ([len(elements)], [len(elements), 1]):
        raise InferenceError(
            f"data has {len(elements)} elements, which is not shape {tensor.shape}"
        )
    try:
        return CODECS[kind].decode_input(tensor)
    except UnicodeError as error:
        raise InferenceError(f"data cannot be decoded: {error}") from None


def requested(payload, known):
    """Return the names of the outputs that a request asks for, all where it names none."""
    names = [one.name for one in payload.outputs or []]
    if unknown := set(names) - set(known):
        raise InferenceError(f"outputs are {known}, not {sorted(unknown)}")
    return names or known
