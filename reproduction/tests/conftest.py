"""Golden figures in a fixed style."""

from support.golden import assert_golden, fixed_style

__all__ = ["assert_golden", "fixed_style"]
