"""Composition: settings become objects; this package opens and closes them and starts background work."""
