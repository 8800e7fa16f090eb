"""Image preprocessing settings, which transformers keeps in preprocessor_config.json."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tightrope.artifacts.files import read_json, write_json
from tightrope.errors import TightropeError

FILE = "preprocessor_config.json"
# from this edge on, ConvNext resizes without keeping the aspect ratio and does not crop
SQUEEZED = 384
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

    `size` and `crop_size` are results of `edges`. Raises TightropeError with `name` for an unknown
    processor or step, and TypeError or ValueError for a wrong size.
    """
    if not isinstance(document, dict):
        raise TightropeError(f"{name}: no settings of an image processor; save them again")
    name_there = (
        document.get("image_processor_type") or document.get("feature_extractor_type") or ""
    )
    # also of old and fast classes
    processor = str(name_there).replace("FeatureExtractor", "ImageProcessor")
    processor = processor.removesuffix("Fast").removesuffix("Pil")
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
    fields["size"] = edges(fields["size"], square="shortest_edge" not in defaults["size"])
    fields["crop_size"] = edges(fields["crop_size"], square=True)
    return fields


def edges(size: Any, *, square: bool) -> Size:
    """Return (height, width) in pixels, or the shortest edge; a number is either, by `square`."""
    if isinstance(size, int):
        size = sides([size, size]) if square else {"shortest_edge": size}
    elif isinstance(size, list | tuple):
        size = sides(size)
    elif not isinstance(size, dict):
        raise ValueError(f"a size of {size!r} is none")
    if set(size) not in ({"shortest_edge"}, {"height", "width"}):
        raise ValueError(f"a size of {', '.join(size)} gives images of several sizes")
    if not all(isinstance(edge, int) and edge > 0 for edge in size.values()):
        raise ValueError(f"sizes are whole numbers of pixels, not {list(size.values())}")
    return size.get("shortest_edge") or (size["height"], size["width"])


@dataclass(frozen=True)
class ImageSettings:
    """Preprocessing of an RGB image to float32 [3, height, width], as a transformers processor.

    `resize` is the new shortest edge, or [height, width], or None for no resizing; `crop` adds a
    center crop to height and width. `resample` is the number of Pillow's filter. Values are
    multiplied by `rescale`, reduced by `mean` and divided by `std`; None skips a step.
    """

    processor: str
    height: int
    width: int
    resize: Size | None
    crop: bool
    crop_pct: float | None
    resample: int
    rescale: float | None
    mean: tuple[float, ...] | None
    std: tuple[float, ...] | None


def load_settings(folder: Path | str) -> ImageSettings:
    """Load the settings of the checkpoint in `folder`.

    Without a preprocessor_config.json, an image is resized to `image_size` of config.json (else
    224), ignoring its aspect ratio, by bicubic interpolation, and normalized with the mean and
    standard deviation of ImageNet. Raises TightropeError for an unknown processor or step, and for
    a number of channels other than 3.
    """
    folder = Path(folder)
    file = folder / FILE
    there = (folder / "config.json").is_file()
    config = read_json(folder / "config.json", dict[str, Any]) if there else {}
    channels = config.get("num_channels", 3)
    if channels != 3:
        raise TightropeError(
            f"{folder / 'config.json'}: {channels}-channel images are not supported yet; "
            "use a 3-channel model"
        )
    if file.is_file():
        name, document = str(file), read_json(file)
    else:
        name, size = f"{folder / 'config.json'}: image_size", config.get("image_size") or SQUARE
        document = {"image_processor_type": "ViTImageProcessor", "resample": 3, **IMAGENET}
        document["size"] = size
    try:
        return settings_of(complete_fields(name, document))
    except (KeyError, TypeError, ValueError) as error:
        raise TightropeError(f"{name}: cannot be used ({error}); fix the file") from error


def settings_of(fields: dict[str, Any]) -> ImageSettings:
    """Return settings of complete fields; raise KeyError, TypeError or ValueError if wrong."""
    processor, size = fields["image_processor_type"], fields["size"]
    resample = fields["resample"]
    if resample not in range(6):
        raise ValueError(f"resample is {resample}, Pillow's filters are 0 to 5")
    means = [tuple(map(float, fields[name])) for name in ("image_mean", "image_std")]
    if any(len(numbers) != 3 for numbers in means) or 0 in means[1]:
        raise ValueError("image_mean and image_std are three numbers each, the latter not 0")
    mean, std = means if fields["do_normalize"] else (None, None)
    crop, crop_pct = bool(fields["do_center_crop"]), None
    result, resize = fields["crop_size"] if crop else size, size if fields["do_resize"] else None
    if processor == "ConvNextImageProcessor" and resize:
        crop_pct = float(fields["crop_pct"])
        if crop or not isinstance(size, int) or not 0 < crop_pct <= 1:
            raise ValueError("ConvNext has a shortest_edge, a crop_pct up to 1, no do_center_crop")
        result, crop = (size, size), size < SQUEEZED
        resize = int(size / crop_pct) if crop else result
    if isinstance(result, int):
        raise ValueError("a shortest_edge without do_center_crop gives images of several sizes")
    height, width = result
    return ImageSettings(
        processor=processor,
        height=height,
        width=width,
        resize=resize,
        crop=crop,
        crop_pct=crop_pct,
        resample=int(resample),
        rescale=float(fields["rescale_factor"]) if fields["do_rescale"] else None,
        mean=mean,
        std=std,
    )


def save_settings(folder: Path | str, settings: ImageSettings) -> None:
    """Write preprocessor_config.json, which transformers' AutoImageProcessor loads."""
    result = settings.height, settings.width
    size = settings.height if settings.crop_pct is not None else settings.resize or result
    crop = settings.crop and settings.crop_pct is None
    document = {
        "image_processor_type": settings.processor,
        "do_convert_rgb": True,
        "do_resize": settings.resize is not None,
        "size": {"shortest_edge": size} if isinstance(size, int) else sides(size),
        "resample": settings.resample,
        "do_center_crop": crop,
        "crop_size": sides(result) if crop else None,
        "crop_pct": settings.crop_pct,
        "do_rescale": settings.rescale is not None,
        "rescale_factor": settings.rescale,
        "do_normalize": settings.mean is not None,
        "image_mean": settings.mean,
        "image_std": settings.std,
    }
    known = {name: value for name, value in document.items() if value is not None}
    write_json(Path(folder) / FILE, known)


def sides(size: Sequence[int]) -> dict[str, int]:
    """Return height and width by name."""
    return dict(zip(("height", "width"), size, strict=True))
