"""Supported image processors of transformers, with their defaults."""

from typing import Any

from tightrope.errors import TightropeError

HALF = [0.5, 0.5, 0.5]
IMAGENET = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
CLIP = {
    "size": {"shortest_edge": 224},
    "do_center_crop": True,
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
}
MOBILE = {"size": {"shortest_edge": 256}, "do_center_crop": True, "resample": 2}
SQUARE = 224
# defaults of fields that are neither in the file nor in PROCESSORS
COMMON = {
    "do_resize": True,
    "size": {"height": SQUARE, "width": SQUARE},
    "resample": 3,
    "do_center_crop": False,
    "crop_size": {"height": SQUARE, "width": SQUARE},
    "do_rescale": True,
    "rescale_factor": 1 / 255,
    "do_normalize": True,
    "image_mean": HALF,
    "image_std": HALF,
}
# transformers classes that only resize, crop, rescale and normalize
PROCESSORS: dict[str, dict[str, Any]] = {
    "BeitImageProcessor": {},
    "BitImageProcessor": CLIP,
    "CLIPImageProcessor": CLIP,
    "ConvNextImageProcessor": {"size": {"shortest_edge": 384}, "crop_pct": 224 / 256},
    "DeiTImageProcessor": {"size": {"height": 256, "width": 256}, "do_center_crop": True},
    "MobileNetV1ImageProcessor": MOBILE,
    "MobileNetV2ImageProcessor": MOBILE,
    "PvtImageProcessor": IMAGENET,
    "SiglipImageProcessor": {},
    "ViTImageProcessor": {"resample": 2},
}
UNKNOWN_STEPS = ("do_pad", "do_flip_channel_order", "do_thumbnail", "do_align_long_axis")
Size = int | tuple[int, int]


def complete_fields(name: str, document: Any) -> dict[str, Any]:
    """Return the fields of a preprocessor_config.json with the defaults of its processor.

    `image_processor_type` is a name in PROCESSORS; `size` and `crop_size` are results of `edges`.
    Raises TightropeError with `name` for an unknown processor or step, and for a wrong size.
    """
    if not isinstance(document, dict):
        raise TightropeError(f"{name}: no settings of an image processor; save them again")
    processor = processor_of(document)
    if processor not in PROCESSORS:
        raise TightropeError(
            f"{name}: image processor {processor or 'without a name'} is not known; known are "
            f"{', '.join(PROCESSORS)}"
        )
    unknown = [step for step in UNKNOWN_STEPS if document.get(step)]
    if unknown:
        raise TightropeError(f"{name}: not supported yet: {unknown[0]}; take a model without it")
    defaults = {**COMMON, **PROCESSORS[processor]}
    stored = {key: value for key, value in document.items() if value is not None}
    fields = {**defaults, **stored, "image_processor_type": processor}
    try:
        fields["size"] = edges(fields["size"], square="shortest_edge" not in defaults["size"])
        fields["crop_size"] = edges(fields["crop_size"], square=True)
    except (TypeError, ValueError) as error:
        raise TightropeError(f"{name}: cannot be used ({error}); fix the file") from error
    return fields


def processor_of(document: dict[str, Any]) -> str:
    """Return the processor's class name as in PROCESSORS, also for old and fast classes."""
    name = document.get("image_processor_type") or document.get("feature_extractor_type") or ""
    name = str(name).replace("FeatureExtractor", "ImageProcessor")
    return name.removesuffix("Fast").removesuffix("Pil")


def edges(size: Any, *, square: bool) -> Size:
    """Return (height, width) in pixels, or the shortest edge; a number is either, by `square`."""
    if isinstance(size, int):
        size = {"height": size, "width": size} if square else {"shortest_edge": size}
    elif isinstance(size, list | tuple):
        size = dict(zip(("height", "width"), size, strict=True))
    elif not isinstance(size, dict):
        raise ValueError(f"a size of {size!r} is none")
    if set(size) not in ({"shortest_edge"}, {"height", "width"}):
        raise ValueError(f"a size of {', '.join(size)} gives images of several sizes")
    if not all(isinstance(edge, int) and edge > 0 for edge in size.values()):
        raise ValueError(f"sizes are whole numbers of pixels, not {list(size.values())}")
    return size.get("shortest_edge") or (size["height"], size["width"])
