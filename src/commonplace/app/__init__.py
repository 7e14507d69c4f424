"""Composition only: settings become objects; opening, closing, and the background."""
