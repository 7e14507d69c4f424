"""The JSON schema of the protocol, generated from the types of params and results."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from commonplace.surfaces.app_server import item_shapes, params, shapes
from commonplace.surfaces.app_server.methods import METHODS

_REF: Final = "#/definitions/{name}"


def schema() -> dict[str, Any]:
    """Return one document: the methods with their params and results, and the definitions that these refer to."""
    table = {"initialize": (params.InitializeParams, shapes.InitializeResult, False, ())} | {
        name: (method.params, method.result, method.experimental, method.experimental_fields)
        for name, method in METHODS.items()
    }
    kinds = [kind for row in table.values() for kind in row[:2]] + [item_shapes.ThreadItem]
    refs, definitions = msgspec.json.schema_components(kinds, ref_template=_REF)
    methods: dict[str, Any] = {}
    for number, (name, row) in enumerate(table.items()):
        methods[name] = {"params": refs[2 * number], "result": refs[2 * number + 1], "experimental": row[2]}
        if known := [each for each in row[3] if each in _fields(row[0])]:
            methods[name]["experimentalFields"] = known
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The app server of Commonplace",
        "methods": dict(sorted(methods.items())),
        "item": refs[-1],
        "definitions": dict(sorted(definitions.items())),
    }


def _fields(kind: type[Any]) -> tuple[str, ...]:
    return tuple(field.encode_name for field in msgspec.structs.fields(kind))
