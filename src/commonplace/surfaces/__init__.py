"""Surfaces parse what comes in, call the core, and render what comes back. They hold no logic."""
