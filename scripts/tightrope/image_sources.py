"""Labelled images of every kind of source."""

from tightrope.data_sources import REMEDY, parse_source
from tightrope.errors import TightropeError
from tightrope.image_store import ImageStore
from tightrope.sources.digits import read_digits
from tightrope.sources.hub import fetch_tables
from tightrope.sources.hub_images import images_of
from tightrope.sources.image_files import kind_of, matching_images, read_class_folders
from tightrope.sources.image_tables import read_image_tables
from tightrope.sources.material import Material
from tightrope.tasks import IMAGE


def read_images(
    source: str, store: ImageStore, *, columns: dict[str, str], images: str | None
) -> Material:
    """Everything that the source has, checked and put into `store`.

    Raises TightropeError for what is no image or has a label that no training image has, naming
    the file, the member of an archive or the row.
    """
    kind, place = parse_source(source, task=IMAGE)
    if kind == "digits":
        return read_digits(store)
    if kind == "hub":
        tables, commit = fetch_tables(source, place, remedy=REMEDY)
        material = images_of(source, tables, columns, store)._replace(revision=commit)
    elif kind_of(matching_images(source, place)[0]) == "table":
        material = read_image_tables(source, place, store, columns=columns, images=images)
    else:
        material = read_class_folders(source, place, store)
    check_labels(material)
    return material


def check_labels(material: Material) -> None:
    """Raise TightropeError for a label of evaluation that no training image has."""
    known = {label for _, label in material.train}
    for image, label in material.evaluation or []:
        if label not in known:
            raise TightropeError(
                f"{image.name}: its label {material.labels[label]!r} is none of the {len(known)} "
                "labels of the training images; mend it, or bring images of it"
            )
