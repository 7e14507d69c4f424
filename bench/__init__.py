"""Measurements, side by side in one run; ratios are what counts, absolute figures stand beside the machine."""
