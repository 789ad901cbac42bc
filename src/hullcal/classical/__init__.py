"""Tests of one classifier: Hosmer–Lemeshow, Vaicenavicius et al. and Widmann et al."""

from __future__ import annotations

from hullcal.classical.hosmer_lemeshow import hosmer_lemeshow
from hullcal.classical.resampling import resampling_test
from hullcal.classical.result import ClassicalTestResult
from hullcal.classical.skce import skce_test

__all__ = ["ClassicalTestResult", "hosmer_lemeshow", "resampling_test", "skce_test"]
