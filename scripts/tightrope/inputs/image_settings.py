"""Image preprocessing settings, which transformers keeps in preprocessor_config.json."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tightrope.artifacts.files import read_json, write_json
from tightrope.errors import TightropeError
from tightrope.inputs.image_processors import IMAGENET, SQUARE, Size, complete_fields

FILE = "preprocessor_config.json"
# from this edge on, ConvNext resizes without keeping the aspect ratio and does not crop
SQUEEZED = 384


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

    def resized(self, height: int, width: int) -> "ImageSettings":
        """Return the settings for another output size, cropping the same proportion."""
        if (height, width) == (self.height, self.width):
            return self
        new = replace(self, height=height, width=width)
        if self.crop_pct is not None and height == width:
            return replace(new, **convnext(height, self.crop_pct))
        if isinstance(self.resize, tuple):
            edges = (self.resize[0] * height / self.height, self.resize[1] * width / self.width)
            new = replace(new, resize=(round(edges[0]), round(edges[1])))
        elif self.resize is not None:
            scale = max(height / self.height, width / self.width)
            new = replace(new, resize=round(self.resize * scale))
        if self.crop_pct is None:
            return new
        # transformers' ConvNext supports squares only
        return replace(new, processor="BitImageProcessor", crop_pct=None)


def convnext(edge: int, crop_pct: float) -> dict[str, Any]:
    """Return the ImageSettings fields by which ConvNextImageProcessor makes a square."""
    squeezed = edge >= SQUEEZED
    return {
        "height": edge,
        "width": edge,
        "resize": (edge, edge) if squeezed else int(edge / crop_pct),
        "crop": not squeezed,
        "crop_pct": crop_pct,
    }


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
        return parse_settings(str(file), read_json(file))
    size = config.get("image_size") or SQUARE
    fields = {"image_processor_type": "ViTImageProcessor", "resample": 3, **IMAGENET, "size": size}
    return parse_settings(f"{folder / 'config.json'}: image_size", fields)


def parse_settings(name: str, document: Any) -> ImageSettings:
    """Return the settings in a preprocessor_config.json; `name` is for errors."""
    fields = complete_fields(name, document)
    try:
        return settings_of(fields)
    except (KeyError, TypeError, ValueError) as error:
        raise TightropeError(f"{name}: cannot be used ({error}); fix the file") from error


def settings_of(fields: dict[str, Any]) -> ImageSettings:
    """Return settings of complete fields; raise KeyError, TypeError or ValueError if wrong."""
    processor, size = fields["image_processor_type"], fields["size"]
    resample = int(fields["resample"])
    if resample not in range(6):
        raise ValueError(f"resample is {resample}, Pillow's filters are 0 to 5")
    means = [tuple(map(float, fields[name])) for name in ("image_mean", "image_std")]
    if any(len(numbers) != 3 for numbers in means) or 0 in means[1]:
        raise ValueError("image_mean and image_std are three numbers each, the latter not 0")
    mean, std = means if fields["do_normalize"] else (None, None)
    values = {
        "processor": processor,
        "resample": resample,
        "rescale": float(fields["rescale_factor"]) if fields["do_rescale"] else None,
        "mean": mean,
        "std": std,
    }
    crop = bool(fields["do_center_crop"])
    if processor == "ConvNextImageProcessor" and fields["do_resize"]:
        crop_pct = float(fields["crop_pct"])
        if crop or not isinstance(size, int) or not 0 < crop_pct <= 1:
            raise ValueError("ConvNext has a shortest_edge, a crop_pct up to 1, no do_center_crop")
        return ImageSettings(**values, **convnext(size, crop_pct))
    result = fields["crop_size"] if crop else size
    if isinstance(result, int):
        raise ValueError("a shortest_edge without do_center_crop gives images of several sizes")
    height, width = result
    resize = size if fields["do_resize"] else None
    return ImageSettings(
        **values, height=height, width=width, resize=resize, crop=crop, crop_pct=None
    )


def save_settings(folder: Path | str, settings: ImageSettings) -> None:
    """Write preprocessor_config.json, which transformers' AutoImageProcessor loads."""
    result = {"height": settings.height, "width": settings.width}
    size: dict[str, int] = result
    if settings.crop_pct is not None:
        size = {"shortest_edge": settings.height}
    elif isinstance(settings.resize, tuple):
        size = {"height": settings.resize[0], "width": settings.resize[1]}
    elif settings.resize is not None:
        size = {"shortest_edge": settings.resize}
    crop = settings.crop and settings.crop_pct is None
    document = {
        "image_processor_type": settings.processor,
        "do_convert_rgb": True,
        "do_resize": settings.resize is not None,
        "size": size,
        "resample": settings.resample,
        "do_center_crop": crop,
        "do_rescale": settings.rescale is not None,
        "do_normalize": settings.mean is not None,
    }
    if crop:
        document["crop_size"] = result
    if settings.crop_pct is not None:
        document["crop_pct"] = settings.crop_pct
    if settings.rescale is not None:
        document["rescale_factor"] = settings.rescale
    if settings.mean is not None and settings.std is not None:
        document |= {"image_mean": list(settings.mean), "image_std": list(settings.std)}
    write_json(Path(folder) / FILE, document)
