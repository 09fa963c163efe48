"""The table of settings that may change while the app runs: label and place on the page, and the page's
limits. Type, default and other limits are those of `Settings`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from omnidemo.core.config.answer_options import POLICIES


@dataclass(frozen=True, slots=True)
class Control:
    """`choices`: the words of its values. `only_when`: shown only while another setting has one of these
    values. `most`: the page's limit, so that no click can use up the machine; the environment variable has
    none."""

    label: str
    hint: str
    choices: Mapping[str, str] = field(default_factory=dict)
    only_when: tuple[str, tuple[str, ...]] | None = None
    most: float | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """Controls that stand together. A group with a title folds."""

    key: str
    title: str
    hint: str
    controls: Mapping[str, Control]


def _going_by(number: str) -> tuple[str, tuple[str, ...]]:
    """`only_when` of a number: the draft policies that go by it."""
    return "draft_policy", tuple(name for name, (_, numbers) in POLICIES.items() if number in numbers)


# In the order of the page.
GROUPS = (
    Group("first", "", "", {
        "training": Control(
            "When the drafter learns", "“Between requests” suits most: it hardly slows a chat.",
            {
                "idle": "between requests", "concurrent": "beside requests",
                "inline": "at the end of each answer", "off": "never",
            },
        ),
        "draft_policy": Control(
            "How far to guess ahead",
            "A guess costs time. “What pays for itself” knows the price of a step and makes no guess that"
            " costs more than it saves. By the switch: what pays for itself, and as long as it is likely to"
            " be right where “Show every likely guess” is on.",
            {"auto": "by the switch on the page"} | {name: words for name, (words, _) in POLICIES.items()},
        ),
        "domain": Control(
            "Topic memory",
            "Which memory taught topics, Compare and API calls use. Automatic gives every topic one of its"
            " own (Compare takes the default). The Chat tab has its own picker.",
        ),
    }),
    Group("when", "When to learn", "How often, and beside what.", {
        "update_interval": Control(
            "Requests between updates", "Fewer means it learns sooner, and trains more often.",
            most=1_000,
        ),
        "patience": Control(
            "Patience, seconds",
            "How long answers without a pause may hold an update up. Then the update runs a quarter of the"
            " time.",
            only_when=("training", ("idle",)), most=3_600,
        ),
    }),
    Group("what", "What to learn from", "Which answers an update draws from the buffer.", {
        "buffer_order": Control(
            "Which answers",
            "Half new and half old keeps what was learned before; the newest alone follows a topic"
            " fastest.",
            {
                "mixed": "half new, half old", "newest": "the newest",
                "informative": "mostly the badly guessed", "uniform": "any, evenly",
            },
        ),
        "buffer_positions": Control(
            "Learn from", "Every token of the answers, or only those where the drafter was wrong.",
            {"all": "every token", "errors": "only where it was wrong"},
        ),
    }),
    Group("how", "How to learn", "Optimiser, losses and the size of the adapter.", {
        "steps_per_update": Control(
            "Steps per update", "More steps learn more from the same answers and take longer.",
            most=500,
        ),
        "batch_size": Control("Answers per step", "Larger batches are steadier and slower.", most=128),
        "learning_rate": Control(
            "Learning rate",
            "How far one step moves the weights at first. A version that is clearly better doubles it, up to"
            " 0.0005; one that got worse is rolled back.",
            most=0.1,
        ),
        "schedule": Control(
            "Rate over time", "Constant keeps adapting for ever; cosine calms down over a number of steps.",
            {"constant": "constant", "cosine": "cosine"},
        ),
        "schedule_steps": Control(
            "Steps of the cosine", "After so many steps the rate has fallen to a tenth.",
            only_when=("schedule", ("cosine",)), most=1_000_000,
        ),
        "lora_rank": Control(
            "Size of the adapter",
            "Rank of the LoRA matrices; 0 trains all weights. Takes effect for a new line or after a"
            " reset.",
            most=1_024,
        ),
        "divergence": Control(
            "Loss", "What “close to the target” means for the drafter's first token at each place.",
            {
                "forward": "forward KL", "reverse": "reverse KL (OmniDraft)", "jsd": "Jensen-Shannon",
                "tv": "total variation", "acceptance": "−log of the acceptance", "nll": "log-likelihood",
            },
        ),
        "jsd_beta": Control(
            "β of Jensen-Shannon", "Which side of the divergence weighs more; 0.5 treats both alike.",
            only_when=("divergence", ("jsd",)),
        ),
        "ngram_loss": Control(
            "Loss on n-grams", "How the pieces of a merged token are taught.",
            {
                "nll": "log-likelihood", "dynamic": "weighted by the target's probability",
                "kl": "approximate KL (equation 2)",
            },
        ),
        "ngram_weight": Control("λ, weight of the n-grams", "0 learns from shared tokens only.", most=10),
        "head": Control(
            "Acceptance head",
            "A small network that predicts whether a guess will be accepted; the draft policy of that name"
            " uses it.",
            {
                "off": "not trained", "joint": "trained with the adapter",
                "interleaved": "trained before each update",
            },
            only_when=("draft_policy", ("head",)),
        ),
    }),
    Group("ahead", "How far to guess ahead", "The numbers of the draft policy, and copying.", {
        "draft_length": Control(
            "Draft length", "Drafter tokens guessed per round; 0 switches guessing off.",
            only_when=_going_by("draft_length"),
        ),
        "longest_draft": Control(
            "Longest draft", "Most drafter tokens per round.",
            only_when=_going_by("longest_draft"),
        ),
        "confidence": Control(
            "Least confidence", "A draft ends where the drafter's best guess is less probable than this.",
            only_when=_going_by("confidence"),
        ),
        "gamma": Control(
            "γ, risk of a rejection",
            "A draft ends when a rejection gets likelier than this; 0.3 suits chat, 0.7 maths and code.",
            only_when=_going_by("gamma"),
        ),
        "copying": Control(
            "Copy, too",
            "What stands in the chat or in an earlier answer is proposed again where the text goes on"
            " alike; it costs the small model nothing.",
        ),
    }),
)  # fmt: skip

CONTROLS: Mapping[str, Control] = {
    name: control for group in GROUPS for name, control in group.controls.items()
}
