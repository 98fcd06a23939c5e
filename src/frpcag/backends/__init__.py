"""Backends: the array arithmetic of one solver step."""

from frpcag.backends.base import BACKENDS, Backend, StepScalars, select_backend

__all__ = ["BACKENDS", "Backend", "StepScalars", "select_backend"]
