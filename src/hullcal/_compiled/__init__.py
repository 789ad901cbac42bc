"""Loops shared by several rooms: arrays in, arrays out, unchecked."""
