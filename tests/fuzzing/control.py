"""Inputs of which it is known what comes of them, to see that nothing can hide a fault."""

import ctypes
import time

import hullcal as hc

#: What an input does, and what must be said of it.
EXPECTED = {
    "work": "done",
    "refuse": "refused",
    "raise": "fault",
    "warn": "fault",
    "crash": "crash",
    "hang": "hang",
    "swell": "fault",
    "work again": "done",
}


def kind_of(number):
    return [*EXPECTED][number % len(EXPECTED)]


def attempt(number, rng):
    kind = kind_of(number)
    if kind == "refuse":
        hc.ClassifierSet(float(rng.random()))
    if kind == "raise":
        raise TypeError("of the reader's own making")
    if kind == "warn":
        hc.ClassifierSet([[0.5, 0.5]]).probs / rng.integers(1)
    if kind == "crash":
        ctypes.string_at(0)
    if kind == "hang":
        time.sleep(1000)
    if kind == "swell":
        bytes(3 * 10**9)
    return "done"


def warm_up():
    """Nothing needs to be loaded."""
