"""Models on disk without pickle: a JSON header and arrays in one npz file. Files of any origin may come in."""

from frpcag.saving.model import MODELS, SavedModel, load

__all__ = ["MODELS", "SavedModel", "load"]
