"""An option and a figure are declared once: what people see is made from the tables."""

from __future__ import annotations

import inspect
from typing import Annotated, Any, Literal, get_args

import pytest
from pydantic import BaseModel, Field

from omnidemo.cli import options as command_options
from omnidemo.core.config import DRAFTING, GenerationConfig, Settings, shown_by
from omnidemo.core.config.answer_options import Option
from omnidemo.serving.endpoint.request_body import with_options

WAYS = {"command", "endpoint", "own", "mcp", "page", "history"}


class Longer(GenerationConfig):
    """The table with one option more."""

    sentences: Annotated[
        int,
        Field(ge=0, le=9),
        Option("End after so many", "Sentences", "At most.", shown="command own mcp page"),
    ] = 0


def test_a_new_option_is_in_a_form_with_its_limits() -> None:
    class Base(BaseModel):
        text: str = ""

    form = with_options("mcp", Longer)(Base)
    said = form.model_json_schema()["properties"]["sentences"]
    assert said["anyOf"][0] == {"type": "integer", "minimum": 0, "maximum": 9}
    assert said["description"] == "End after so many. Left out: 0."
    assert getattr(form(), "sentences") is None and getattr(form(sentences=3), "sentences") == 3  # noqa: B009
    for wrong in (10, True):
        with pytest.raises(ValueError):
            form(sentences=wrong)


def test_a_command_has_every_option_that_it_shows_with_what_holds_otherwise() -> None:
    @command_options.answer_options
    def command(prompt: str, **options: Any) -> None:
        """Nothing."""

    parameters = inspect.signature(command).parameters
    assert list(parameters) == ["prompt", *shown_by("command")]
    helps = {name: parameters[name].annotation.__metadata__[0].help for name in shown_by("command")}
    assert helps["top_p"] == "Keep the likeliest tokens of this mass; default the target's own."
    assert helps["draft_length"] == "Drafter tokens per round; default OMNIDEMO_DRAFT_LENGTH, else 4."
    assert helps["seed"] == "Repeats a run above temperature 0."


def test_a_new_option_has_a_control_by_its_type() -> None:
    from omnidemo.ui.tabs.chat_controls import control

    assert control("sentences", Longer).get_config()["name"] == "slider"
    assert control("learn").get_config()["name"] == "checkbox"
    assert control("draft_policy").get_config()["name"] == "dropdown"


def test_an_option_that_is_a_setting_has_the_same_limits() -> None:
    for name in GenerationConfig.model_fields.keys() & Settings.model_fields.keys() - {"domain", "method"}:
        asked, usual = GenerationConfig.model_fields[name], Settings.model_fields[name]
        limits = [part for part in asked.metadata if not isinstance(part, Option)]
        annotation: Any = usual.annotation
        if name in DRAFTING and name != "draft_policy":
            assert asked.default == usual.default, name
        if name == "draft_policy":  # of which the settings have one more, which stands for others
            assert "auto" in get_args(annotation)
            annotation = Literal[tuple(one for one in get_args(annotation) if one != "auto")]
        assert asked.annotation == annotation and limits == usual.metadata, name


@pytest.mark.parametrize(
    ("given", "usual", "likely"),
    [
        ({}, "cost", "chance"),
        ({"draft_policy": "auto"}, "cost", "chance"),
        ({"draft_policy": "chance"}, "chance", "chance"),
        ({"draft_policy": "fixed"}, "fixed", "fixed"),
    ],
)
def test_answers_are_drafted_by_cost_and_every_likely_guess_by_chance_unless_one_policy_is_set(
    given: dict[str, Any], usual: str, likely: str
) -> None:
    settings = Settings(**given)
    assert settings.policy() == usual and settings.policy(likely=True) == likely
    drafting = settings.drafting
    assert drafting["draft_policy"] == usual and drafting["longest_draft"] == settings.longest_draft
    assert GenerationConfig.of(**drafting).draft_policy == usual
