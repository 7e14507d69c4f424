"""The version, alone in a module so that asking for it imports nothing."""

__version__ = "0.1.0"
