"""Tests of one classifier: Hosmer–Lemeshow, Vaicenavicius et al. and Widmann et al."""

from __future__ import annotations

from hullcal.classical.single import ClassicalTestResult, hosmer_lemeshow, resampling_test
from hullcal.classical.skce import skce_test

__all__ = ["ClassicalTestResult", "hosmer_lemeshow", "resampling_test", "skce_test"]
