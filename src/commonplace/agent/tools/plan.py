"""`update_plan`: the steps of the work and their status, shown to the person."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from commonplace.agent.tools.arguments import bad_arguments, decode, schema
from commonplace.agent.tools.registry import ToolContext, ToolDefinition, ToolInvocation, ToolOutput, description

MOST_STEPS: Final = 100
"""Nobody reads a longer plan."""
Status = Literal["pending", "in_progress", "completed"]


class PlanStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One step."""

    step: Annotated[str, Meta(min_length=1, description="What is done, in a few words.")]
    status: Status


class PlanUpdate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `update_plan` takes; also the detail of its output."""

    plan: Annotated[list[PlanStep], Meta(max_length=MOST_STEPS, description="All steps, in their order.")]
    explanation: Annotated[str, Meta(description="Why the plan changed.")] | None = None


class UpdatePlan:
    """Replaces the plan that a person sees."""

    aliases = ()
    parallel = True
    mutates = False

    def __init__(self) -> None:
        self.definition = ToolDefinition("update_plan", "function", description("update_plan"), schema(PlanUpdate))

    async def run(self, call: ToolInvocation, context: ToolContext) -> ToolOutput:
        """Check the plan and return it as the output's detail."""
        plan = decode(call.arguments, PlanUpdate)
        in_progress = sum(step.status == "in_progress" for step in plan.plan)
        if in_progress > 1:
            raise bad_arguments(f"{in_progress} steps are in progress; at most one may be")
        if any(not step.step.strip() for step in plan.plan):
            raise bad_arguments("a step has no words")
        return ToolOutput(content="The plan is shown.", detail=plan)
