"""The JSON schema of the protocol, generated from the types of params and results."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from commonplace.surfaces.app_server import calls, item_shapes

_REF: Final = "#/definitions/{name}"


def schema() -> dict[str, Any]:
    """Return one document: the methods with their params and results, and the definitions that these refer to."""
    kinds = [kind for call in calls.ALL for kind in (call.params, call.result)] + [item_shapes.ThreadItem]
    refs, definitions = msgspec.json.schema_components(kinds, ref_template=_REF)
    methods: dict[str, Any] = {}
    for number, call in enumerate(calls.ALL):
        methods[call.name] = {
            "params": refs[2 * number],
            "result": refs[2 * number + 1],
            "experimental": call.experimental,
        }
        if known := [each for each in call.experimental_fields if each in _fields(call.params)]:
            methods[call.name]["experimentalFields"] = known
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The app server of Commonplace",
        "methods": dict(sorted(methods.items())),
        "item": refs[-1],
        "definitions": dict(sorted(definitions.items())),
    }


def _fields(kind: type[Any]) -> tuple[str, ...]:
    return tuple(field.encode_name for field in msgspec.structs.fields(kind))
