from __future__ import annotations

from object_stores import place, s3_place, s3_server

__all__ = ["place", "s3_place", "s3_server"]
