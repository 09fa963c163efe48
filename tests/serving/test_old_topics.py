"""A storage folder of a version that had other sample topics: their lines, answers and figures are still
there, and can be deleted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from omnidemo.core.config import Settings
from omnidemo.learning.lines import sample_prompts
from omnidemo.learning.lines.router import DEFAULT
from omnidemo.serving.services import Services
from tests.support.chats import chat, ready

OLD = {
    "stories": (
        "Tell me a story about a fox.",
        "Make up a story about a bear.",
        "A story with a snail, please.",
    ),
    "news": ("Write a news report about the fair.", "Shorten this report to one sentence: it rains."),
}


@pytest.fixture
def settings(
    tmp_path: Path, models: tuple[str, str], quick_loads: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Settings]:
    """The settings of an app whose storage folder an older version has left: a line `stories` with a version,
    and a router that was taught it."""
    learning = {"training": "inline", "update_interval": 2, "steps_per_update": 2, "lora_rank": 4}
    made = Settings.model_validate({"storage": tmp_path / "storage", "domain": "auto", **learning})
    with monkeypatch.context() as older:
        older.setattr(sample_prompts, "TOPICS", tuple(OLD))
        older.setattr(sample_prompts, "prompts", lambda topic, kind="test": OLD[topic])
        with closing(Services(made)) as services:
            ready(services, models)
            for prompt in OLD["stories"][:2]:
                assert chat(services, models, prompt, domain="stories")[1].domain == "stories"
            assert services.adaptation.trainer(*models, "stories").version == 1
    yield made


def test_a_line_of_an_old_topic_opens_is_listed_and_can_be_deleted(
    settings: Settings, models: tuple[str, str]
) -> None:
    with closing(Services(settings)) as services:
        ready(services, models)
        assert "stories" not in services.topics()
        with pytest.raises(ValueError, match="unknown topic 'stories'"):
            services.sample_prompts("stories", 1)
        listed = [(line.domain, line.version) for line in services.adaptation.lines(*models)]
        assert listed == [(DEFAULT, 0), ("stories", 1)]
        by_hand, by_words = (
            chat(services, models, "A story about a bear.", domain=line)[1] for line in ("stories", "auto")
        )
        assert (by_hand.domain, by_hand.adapter_version) == ("stories", 1)
        assert by_words.domain == "stories"  # somebody has taught it
        assert [row["topic"] for row in services.store.requests()][-2:] == ["stories"] * 2
        services.adaptation.reset(*models, "stories")
        assert services.adaptation.on_disk(*models, "stories") == []
        assert services.store.flush() and services.store.adapters(*models, "stories") == []
    with closing(Services(settings)) as services:
        ready(services, models)
        assert [line.domain for line in services.adaptation.lines(*models)] == [DEFAULT]
        assert len(services.store.requests()) == 4  # the history stays


def test_topics_of_today_are_known_beside_those_that_were_taught(
    settings: Settings, models: tuple[str, str]
) -> None:
    """The router's file knows `stories`, which was taught, and `news`, from the old prompts alone."""
    with closing(Services(settings)) as services:
        known = services.adaptation.router.domains()
        assert set(known) == {"stories", *sample_prompts.TOPICS}
        services.adaptation.teach("How many apples are left?", "maths")
        assert services.adaptation.router.route("How many apples are left?").domain == "maths"
