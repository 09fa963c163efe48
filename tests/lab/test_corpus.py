"""The generated corpus: the same by seed, typographically clean, right in its answers, and with splits that
do not meet."""

from __future__ import annotations

import random
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

import pytest

from lab.bundled import data
from lab.bundled.corpus import maths_speech, mixer
from lab.bundled.corpus.base import Example

DRAWS = 300
CHECKED = tuple(domain for domain in mixer.DOMAINS if domain != "chat")


def draw(domain: str, count: int = DRAWS, held_out: bool = False, seed: int = 7) -> list[Example]:
    rng = random.Random(seed)
    return [mixer.sample(rng, domain, held_out) for _ in range(count)]


def with_heads(split: str, count: int) -> tuple[list[Example], list[str]]:
    """The beginning of a split's stream, and the first prompt of each part of its chats."""
    heads: list[str] = []
    joined = mixer._joined

    def noted(parts: Sequence[Example]) -> Example:
        heads.extend(part.turns[0][0] for part in parts)
        return joined(parts)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(mixer, "_joined", noted)
        return list(islice(mixer.stream(3, split), count)), heads


@pytest.fixture(scope="module")
def trained() -> tuple[list[Example], list[str]]:
    """What a training reads first."""
    return with_heads("train", 6000)


def words(prompt: str) -> str:
    return " ".join(re.sub(r"[^a-z0-9]+", " ", prompt.lower()).split())


def texts(example: Example) -> Iterator[str]:
    for turn in example.turns:
        yield from turn


def wrong(example: Example) -> str:
    """An answer that looks like the right one and is not."""
    answer = example.turns[-1][1]
    if example.number is not None:
        return f"{answer} Or is it {example.number}1?"
    if example.tests:
        return re.sub(r"return .*", "return object()", answer)
    return "I am not sure about that."


def test_mix_names_every_domain_and_sums_to_one() -> None:
    assert set(mixer.MIX) == set(mixer.DOMAINS)
    assert sum(mixer.MIX.values()) == pytest.approx(1.0)


@pytest.mark.parametrize("split", mixer.SPLITS)
def test_stream_is_determined_by_its_seed(split: str) -> None:
    def first(seed: int) -> list[Example]:
        return list(islice(mixer.stream(seed, split), 60 if split == "train" else 10))

    once = first(1)
    assert once == first(1)
    assert once != first(2)


def test_held_out_patterns_are_those_that_always_were() -> None:
    # Written out in a list: a pattern that changed sides would spoil the comparison of two trainings.
    counts = {"stories": 14, "maths": 46, "code": 163, "howto": 22, "news": 54}
    assert "news/summary_match/6" in mixer.patterns("news", True)
    assert "news/summary_opening/0" in mixer.patterns("news", False)
    for domain, count in counts.items():
        held = mixer.patterns(domain, True)
        assert len(held) == count and not set(held) & set(mixer.patterns(domain, False))
    # By the rule that the list was made with.
    assert all(
        zlib.crc32(name.encode()) % 10 == 3 for domain in counts for name in mixer.patterns(domain, True)
    )


def test_every_held_out_task_has_trained_siblings() -> None:
    for domain in CHECKED:
        trained = {name.rsplit("/", 1)[0] for name in mixer.patterns(domain, False)}
        assert {name.rsplit("/", 1)[0] for name in mixer.patterns(domain, True)} <= trained


def test_splits_share_no_prompt(trained: tuple[list[Example], list[str]]) -> None:
    """Of a chat of several turns, the first prompt of each of its parts counts: "shorter" follows on a prompt
    of its own split."""
    turns: dict[str, set[str]] = {}
    for split, (examples, heads) in (
        ("train", trained),
        ("validation", with_heads("validation", 100)),
        ("test", with_heads("test", 100)),
    ):
        assert all(mixer.split_of(example) == split for example in examples)
        turns[split] = {words(prompt) for prompt in (*heads, *(example.turns[0][0] for example in examples))}
    assert not turns["train"] & turns["validation"]
    assert not turns["train"] & turns["test"]
    assert not turns["validation"] & turns["test"]


def test_split_shares() -> None:
    splits = [mixer.split_of(example) for domain in CHECKED for example in draw(domain, 2000)]
    assert 0.004 < splits.count("validation") / len(splits) < 0.02
    assert 0.01 < splits.count("test") / len(splits) < 0.035


def test_the_split_does_not_see_case_and_punctuation() -> None:
    example = draw("news", 1)[0]
    for prompt in ("Name the town, please.", "name the town please", "NAME  the town: please!"):
        same = replace(example, turns=((prompt, "Ardel."),))
        assert mixer.split_of(same) == mixer.split_of(
            replace(example, turns=(("Name the town please", "Ardel."),))
        )


def test_a_share_of_the_chats_is_of_facts() -> None:
    usual, more = (
        list(islice(mixer.stream(7, "train", domains=["chat"], facts=share), 1500)) for share in (0.0, 0.5)
    )
    of_facts = [
        sum(example.pattern.startswith(mixer._FACTS) for example in examples) / 1500
        for examples in (usual, more)
    ]
    assert of_facts[0] < 0.1 and of_facts[1] == pytest.approx(0.5, abs=0.06)


def test_training_stream_never_uses_a_held_out_pattern(trained: tuple[list[Example], list[str]]) -> None:
    held = {name for domain in mixer.DOMAINS for name in mixer.patterns(domain, True)}
    assert not held & {example.pattern for example in trained[0]}
    assert {example.pattern for example in islice(mixer.stream(5, "train", held_out=True), 500)} <= held


def test_stream_repeats_nothing_and_keeps_the_mix(trained: tuple[list[Example], list[str]]) -> None:
    examples, _ = trained
    assert len({example.turns for example in examples}) == len(examples)
    # A joined chat may end with thanks or a goodbye, so the shares are those of the single ones.
    single = [example for example in examples if len(example.turns) == 1]
    for domain, share in mixer.MIX.items():
        found = sum(example.domain == domain for example in single) / len(single)
        # follow-ups are of several turns, more of them in some domains
        assert found == pytest.approx(share, abs=0.06), domain


@pytest.mark.parametrize("part", ["large", "further", "upper"])
def test_the_large_model_reads_more_chat(part: str) -> None:
    mix = data.MIXES[part]
    assert sum(mix.values()) == pytest.approx(1.0) and mix["chat"] > 2 * mixer.MIX["chat"]
    single = [example for example in islice(data.examples_for(part, 19), 2500) if len(example.turns) == 1]
    for domain, share in mix.items():
        assert sum(example.domain == domain for example in single) / len(single) == pytest.approx(
            share, abs=0.07
        ), domain


@pytest.mark.parametrize("split", ["train", "test"])
def test_share_of_chats_of_several_turns(split: str) -> None:
    examples = list(islice(mixer.stream(13, split, domains=CHECKED), 600 if split == "train" else 200))
    # joined ones and follow-ups
    assert 0.1 < sum(len(example.turns) > 1 for example in examples) / len(examples) < 0.35


def test_a_joined_chat_is_about_its_last_turn() -> None:
    joined = [
        example
        for example in islice(mixer.stream(17, "train", domains=CHECKED), 1500)
        if len(example.turns) > 1
    ]
    assert joined
    assert all(mixer.check(example, example.turns[-1][1]) for example in joined if not example.tests)


def test_stream_of_one_domain_and_of_another_mix() -> None:
    assert {example.domain for example in islice(mixer.stream(1, "train", domains=["maths"]), 100)} == {
        "maths"
    }
    mixed = islice(mixer.stream(1, "train", mix={"news": 0.5, "code": 0.5}), 200)
    assert {example.domain for example in mixed} == {"news", "code"}


def test_stream_refuses_what_it_cannot_give() -> None:
    with pytest.raises(ValueError, match="split"):
        mixer.stream(1, "everything")
    with pytest.raises(ValueError, match="no domain"):
        mixer.stream(1, "train", domains=["chat"], mix={"news": 1.0})


@pytest.mark.parametrize("domain", mixer.DOMAINS)
def test_text_is_clean(domain: str) -> None:
    for example in draw(domain):
        assert example.domain == domain
        assert example.pattern.startswith(domain + "/")
        for text in texts(example):
            assert text and text.isascii(), example.pattern
            assert not re.search(r"[ \t]$", text, re.MULTILINE), example.pattern
            # Code is indented, everything else has single spaces.
            assert not re.search(r"(?<=\S)  " if "def " in text else r"  ", text), example.pattern
            assert text == text.strip() and not re.search(r"[{}]", text if domain == "news" else ""), (
                example.pattern
            )


@pytest.mark.parametrize("domain", mixer.DOMAINS)
def test_every_pattern_makes_an_example_of_its_name(domain: str) -> None:
    for held_out in (False, True):
        for name in mixer.patterns(domain, held_out):
            assert mixer._TABLES[domain][name](random.Random(1)).pattern == name


def test_maths_answers_end_in_their_number() -> None:
    """Every pattern, several times: the result is the last number, behind no mark."""
    for name in (*mixer.patterns("maths", False), *mixer.patterns("maths", True)):
        for seed in range(6):
            example = mixer.make(random.Random(seed), name)
            answer = example.turns[-1][1]
            assert "#" not in answer
            assert re.findall(r"\d+", answer)[-1] == example.number, (name, answer)
            assert mixer.check(example, answer), (name, answer)


_SIGN_WORDS = {"plus": "+", "minus": "-", "times": "*", "x": "*", "divided by": "/", "take away": "-"}


def test_small_sums_have_the_result_of_what_is_asked() -> None:
    """The sum is read from the prompt alone, in digits or words, and worked out again."""
    spelt = sorted(
        ((maths_speech.spelt(number), str(number)) for number in range(101)), key=lambda pair: -len(pair[0])
    )
    count = 0
    for name in mixer.patterns("maths", False):
        if not name.startswith(
            (
                "maths/sum_add",
                "maths/sum_sub",
                "maths/sum_mul",
                "maths/sum_div",
                "maths/sum_words",
                "maths/sum_mixed",
            )
        ):
            continue
        for seed in range(8):
            example = mixer.make(random.Random(seed), name)
            prompt = example.turns[-1][0].lower()
            for word, digits in spelt:
                prompt = re.sub(rf"(?<![a-z-]){word}(?![a-z-])", digits, prompt)
            for word, sign in _SIGN_WORDS.items():
                prompt = re.sub(rf"(?<=\d) ?{word} ?(?=\d)", sign, prompt)
            sums = re.findall(r"[(\d][\d()+*/ -]*[-+*/][\d()+*/ -]*[\d)]", prompt)
            if sums:
                assert eval(sums[-1]) == int(str(example.number)), (name, prompt, example.number)
                count += 1
    assert count > 500


def test_a_problem_is_said_by_anybody_in_right_english() -> None:
    for name in mixer.patterns("maths", False):
        for seed in range(6):
            for turn in mixer.make(random.Random(seed), name).turns:
                for text in turn:
                    found = re.search(
                        r"\b(?:I|i|you|You) (?:has|is|gives|gets|does)\b|\b[Ii] are\b|\bof you"
                        r" \d|[<>\[\]|~{}]|[a-z] [.,]|  ",
                        text,
                    )
                    assert not found, (name, text)


def test_maths_sums_are_right() -> None:
    """Every plain sum that an answer writes out ("12 + 7 = 19") holds."""
    number = r"\d[\d,]*(?:\.\d+)?"
    sign = {"+": "+", "-": "-", "*": "*", "x": "*", "/": "/"}
    shown = re.compile(
        rf"(?<![\d.+*/x=-] )(?<![\d.])({number}(?: [-+*x/] {number})+) = ({number})(?! ?(?:[-+*x/%] ?\d|\d))"
    )
    count = 0
    for example in draw("maths"):
        for left, right in shown.findall(example.turns[-1][1]):
            terms = re.sub(r" ([-+*x/]) ", lambda match: sign[match[1]], left.replace(",", ""))
            assert re.fullmatch(r"[\d.+*/-]+", terms)
            assert eval(terms) == pytest.approx(float(right.replace(",", "").rstrip("."))), (
                example.pattern,
                left,
            )
            count += 1
    assert count > DRAWS / 2


def test_code_passes_its_tests() -> None:
    """All but what only explains: its facts are what the answer has to say."""
    table = mixer._TABLES["code"]
    edits = [
        table[name](random.Random(seed))
        for name in table
        for seed in range(3)
        if name.startswith(("code/edit_", "code/follow_"))
    ]
    for example in (*draw("code", 200), *edits):
        assert bool(example.tests) != (
            "explain" in example.pattern or "/follow_call" in example.pattern or "_result" in example.pattern
        )
        space: dict[str, object] = {}
        if example.tests:
            source = "\n".join((example.turns[-1][1], *example.tests))
            # or annotations would be strings, as they are here
            exec(compile(source, example.pattern, "exec", dont_inherit=True), space)


@pytest.mark.parametrize("domain", mixer.DOMAINS)
def test_check_accepts_the_reference_answer(domain: str) -> None:
    for example in draw(domain, 6 if domain == "code" else DRAWS):
        assert mixer.check(example, example.turns[-1][1]), (example.pattern, example.facts)


@pytest.mark.parametrize("domain", CHECKED)
def test_check_rejects_a_wrong_answer(domain: str) -> None:
    examples = draw(domain, 6 if domain == "code" else DRAWS)
    # An open wish ("tell me a story") has no facts to repeat; such prompts must stay few, for the check
    # cannot fail on them.
    checkable = [example for example in examples if example.facts or example.number or example.tests]
    assert len(checkable) > 0.85 * len(examples)
    for example in checkable:
        assert not mixer.check(example, wrong(example)), example.pattern
        assert not mixer.check(example, ""), example.pattern


@pytest.mark.parametrize("domain", ["stories", "howto", "news"])
def test_every_pattern_has_an_answer_that_passes(domain: str) -> None:
    for name, pattern in mixer._TABLES[domain].items():
        for seed in range(3):
            example = pattern(random.Random(seed))
            assert mixer.check(example, example.turns[-1][1]), (name, seed)


def test_follow_ups_are_about_their_own_last_turn() -> None:
    """Several turns, and right only if the last answer is: the first answer is no answer to the follow-up."""
    for domain in ("stories", "code", "howto", "news"):
        names = [name for name in mixer._TABLES[domain] if "/follow_" in name]
        assert len(names) >= 30
        for name in names:
            example = mixer._TABLES[domain][name](random.Random(2))
            assert len(example.turns) >= 2 and (example.facts or example.tests), name
            if not name.startswith(("howto/follow_again", "news/follow_again")):
                assert example.turns[0][1] != example.turns[-1][1], name


def test_an_edit_changes_the_code_that_it_is_given() -> None:
    table = mixer._TABLES["code"]
    for name in (name for name in table if name.startswith(("code/edit_", "code/follow_"))):
        for seed in range(10):
            example = table[name](random.Random(seed))
            given = example.turns[-1][0] if len(example.turns) == 1 else example.turns[-2][1]
            answer = example.turns[-1][1]
            if example.tests:
                assert answer not in given, (name, seed)
                # it is still the same function
                assert len(set(answer.split()) & set(given.split())) >= 2, (name, seed)


def test_stories_of_different_prompts_have_different_heroes() -> None:
    """The free choices follow from the prompt, and by no other random source: the same prompt, the same
    story."""
    rng, heroes, by_prompt = random.Random(3), [], {}
    while len(heroes) < 200:
        example = mixer.sample(rng, "stories")
        (prompt, story), *more = example.turns
        if by_prompt.setdefault(prompt, story) != story and not more:
            raise AssertionError(prompt)
        if example.pattern.startswith(("stories/ask_animal", "stories/ask_two", "stories/ask_thing")):
            heroes.append(
                re.search(r"named (\w+)|^(\w+) was", story)[0].split()[
                    -1 if "named" in story.split(".")[0] else 0
                ]
            )
    assert len(set(heroes)) >= 60
    assert max(map(heroes.count, heroes)) / len(heroes) <= 0.08


def test_check_of_a_number() -> None:
    example = replace(draw("maths", 1)[0], number="1250")
    for answer in (
        "#### 1250",
        "so #### 1,250.",
        "#### 3\n#### 1250",
        "####1250.0",
        "1250",
        "So 3 boxes hold 1,250 apples.",
    ):
        assert mixer.check(example, answer), answer
    for answer in (
        "1250 apples for 3",
        "12,501",
        "#### 125",
        "#### 1250 apples or 3",
        "#### 1250\n#### 3",
        "####",
        "#### nan",
    ):
        assert not mixer.check(example, answer), answer


def test_check_of_facts() -> None:
    example = replace(draw("news", 1)[0], facts=("Ardel", "250"))
    assert mixer.check(example, "In ARDEL, 250 trees were planted.")
    assert not mixer.check(example, "In Ardel, 1,250 trees were planted.")
    assert not mixer.check(example, "In Ardel, trees were planted.")


@pytest.mark.parametrize(
    "answer",
    [
        "def double(x):\n    return x * 3",
        "def double(x)\n    return x * 2",
        "import os\nos._exit(0)",
        "raise SystemExit(0)",
        "print('all tests passed')\nraise SystemExit(0)" + "\n" * 3 + "def double(x):\n    return",
        "def double(x):\n    return undefined",
        "not code at all",
    ],
)
def test_check_of_code_that_fails(answer: str) -> None:
    example = replace(draw("code", 1)[0], tests=("assert double(2) == 4",))
    assert mixer.check(example, "def double(x):\n    return x * 2")
    assert not mixer.check(example, answer)


def test_check_of_code_that_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mixer, "CODE_TIMEOUT_S", 0.5)
    example = replace(draw("code", 1)[0], tests=("assert double(2) == 4",))
    assert not mixer.check(example, "def double(x):\n    while True:\n        pass")
    assert not mixer.check(example, "def double(x):\n    return list(range(10 ** 12))")


def test_check_of_code_sees_no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIDEMO_SECRET", "1")
    example = replace(draw("code", 1)[0], tests=("assert double(2) == 4",))
    answer = "import os\ndef double(x):\n    return 0 if 'OMNIDEMO_SECRET' in os.environ else x * 2"
    assert mixer.check(example, answer)
