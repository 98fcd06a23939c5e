"""The paper, cell by cell (``make reproduce``): data sets, corruptions, scores and experiments; not in the wheel."""

from reproduction.corrupt import block_occlusion, missing_pixels, salt_and_pepper
from reproduction.datasets import DATASETS, list_datasets, load_dataset

__all__ = ["DATASETS", "block_occlusion", "list_datasets", "load_dataset", "missing_pixels", "salt_and_pepper"]
