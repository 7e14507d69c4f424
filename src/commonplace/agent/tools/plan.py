"""`update_plan`: the steps of the work and how far it is, for the person who waits. Nothing else changes."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from commonplace.agent.tools.arguments import bad, decode, schema
from commonplace.agent.tools.described import description
from commonplace.agent.tools.registry import Call, Context, Definition, Output

MOST_STEPS: Final = 100
Status = Literal["pending", "in_progress", "completed"]


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One step."""

    step: Annotated[str, Meta(min_length=1, description="What is done, in a few words.")]
    status: Status


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `update_plan` takes; also the detail of its output."""

    plan: Annotated[list[Step], Meta(max_length=MOST_STEPS, description="All steps, in their order.")]
    explanation: Annotated[str, Meta(description="Why the plan changed.")] | None = None


class UpdatePlan:
    """Takes a new plan."""

    aliases = ()
    parallel = True
    mutates = False

    def __init__(self) -> None:
        self.definition = Definition("update_plan", "function", description("update_plan"), schema(Plan))

    async def run(self, call: Call, context: Context) -> Output:
        """Check the plan and hand it on."""
        plan = decode(call.arguments, Plan)
        at_work = [step.step for step in plan.plan if step.status == "in_progress"]
        if len(at_work) > 1:
            raise bad(f"{len(at_work)} steps are in progress; at most one may be")
        if any(not step.step.strip() for step in plan.plan):
            raise bad("a step has no words")
        return Output(content="The plan is shown.", detail=plan)
