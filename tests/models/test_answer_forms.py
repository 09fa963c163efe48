"""Forms of answers by llguidance: masks depend on ids alone, and what cannot be kept is refused in a
sentence."""

from __future__ import annotations

import json
import random
import sys
from contextlib import suppress
from time import perf_counter, thread_time
from typing import Any

import numpy as np
import pytest

from omnidemo.core.config import GenerationConfig
from omnidemo.models.answer_forms import AnswerForms, FormError, GuidedConstraint
from omnidemo.models.load import open_source
from tests.support.fetched import file_of
from tests.support.trained_pair import TARGET
from tests.support.worlds import vocabulary

ORDER = {
    "type": "object",
    "properties": {
        "name": {"type": "string"}, "count": {"type": "integer"}, "kind": {"enum": ["new", "newer", None]},
        "day": {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}$"},
    },
    "required": ["name", "count", "kind", "day"], "additionalProperties": False,
}  # fmt: skip
FORMS: list[dict[str, Any]] = [
    {"schema": ORDER}, {"schema": {"type": ["integer", "boolean"]}}, {"regex": "a(bc)*d?"},
    {"choices": ["yes", "no", "yes please"]}, {"json_object": True},
    {"grammar": 'root ::= "a" [0-9]+ ("b" | root)'},
]  # fmt: skip


@pytest.fixture(scope="module")
def forms() -> AnswerForms:
    _, own = open_source(TARGET).tokenizer()
    return AnswerForms(own, len(own) + 3)


def made(forms: AnswerForms, **form: Any) -> GuidedConstraint:
    text = GenerationConfig.of(**form).form
    assert text is not None
    return forms.constraint(text)


def walk(form: GuidedConstraint, seed: int, steps: int = 40) -> list[int]:
    """Ids that the form allows, drawn; the form has read them."""
    draws, ids = random.Random(seed), list[int]()
    for _ in range(steps):
        ids.append(draws.choice(np.flatnonzero(form.allowed()).tolist()))
        if ids[-1] == form.end:
            return ids[:-1]
        form.step(ids[-1])
    return ids


@pytest.mark.parametrize("form", FORMS, ids=lambda form: next(iter(form)))
@pytest.mark.parametrize("seed", range(3))
def test_masks_depend_on_the_ids_alone(forms: AnswerForms, form: dict[str, Any], seed: int) -> None:
    walked = made(forms, **form)
    ids, fresh = walk(walked, seed), made(forms, **form)
    for token in ids:
        there = fresh.allowed()
        assert there.any() and (fresh.allowed() == there).all()  # asked twice
        row = np.zeros(len(there), np.float32)
        fresh.mask(row.copy(), row)
        assert (np.isfinite(row) == there).all()
        assert [fresh.allows(one) for one in range(len(there))] == there.tolist()
        assert fresh.legal(ids) >= 0 and (fresh.allowed() == there).all()
        fresh.step(token)
    assert (fresh.allowed() == walked.allowed()).all()
    walked.back(len(ids))
    assert (walked.allowed() == made(forms, **form).allowed()).all()  # rolled back


@pytest.mark.parametrize("form", FORMS, ids=lambda form: next(iter(form)))
def test_what_is_forced_is_all_that_is_allowed(forms: AnswerForms, form: dict[str, Any]) -> None:
    for seed in range(4):
        one = made(forms, **form)
        for token in walk(made(forms, **form), seed):
            forced = one.forced(16)
            assert one.legal(forced) == len(forced)
            for each in forced:
                assert np.flatnonzero(one.allowed()).tolist() == [each]
                if each == one.end:
                    break
                one.step(each)
            one.back(len(forced) - (forced[-1:] == [one.end]))
            one.step(token)


def test_rows_of_a_proposal_are_masked_one_by_one(forms: AnswerForms) -> None:
    form = made(forms, choices=["yes", "no"])
    ids = walk(made(forms, choices=["yes", "no"]), 1)
    rows = np.zeros((len(ids) + 1, forms._rows), np.float32)
    masked, own = form.masked(rows, ids), made(forms, choices=["yes", "no"])
    for row, token in zip(masked, [*ids, None], strict=True):
        assert (np.isfinite(row) == own.allowed()).all()
        if token is not None:
            own.step(token)
    assert not rows.any()  # a copy


def test_the_end_is_masked_until_the_json_is_complete(forms: AnswerForms) -> None:
    form = made(forms, schema={"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"],
                               "additionalProperties": False})  # fmt: skip
    forced = form.forced(99)
    assert forced[-1] == form.end and forms._vocabulary.text_bytes(forced) == b'{"a": 1}'
    assert not form.allows(form.end)


def test_options_of_a_client_are_not_obeyed(forms: AnswerForms) -> None:
    loose = made(forms, schema=ORDER | {"x-guidance": {"whitespace_flexible": True}})
    assert (loose.allowed() == made(forms, schema=ORDER).allowed()).all()
    assert loose.forced(9) == made(forms, schema=ORDER).forced(9) != []


def deep(count: int) -> str:
    return '{"items": ' * count + "{}" + "}" * count


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no JSON": ({"schema": "{"}, "no JSON"),
    "no schema": ({"schema": "[1]"}, "an object"),
    "an unknown type": ({"schema": {"type": "duck"}}, "Invalid type: duck"),
    "a keyword that is not served": ({"schema": {"not": {}}}, "not"),
    "a remote $ref": ({"schema": {"$ref": "https://example.org/a.json"}}, "example.org"),
    "a lookahead": ({"schema": {"type": "string", "pattern": "(?=a)b"}}, "look-ahead"),
    "an unknown format": ({"schema": {"type": "string", "format": "duck"}}, "Unknown format: duck"),
    "an empty range": ({"schema": {"type": "integer", "minimum": 5, "maximum": 3}}, "greater than maximum"),
    "an empty enum": ({"schema": {"enum": []}}, "Unsatisfiable"),
    "a cycle of $ref": ({"schema": {"$ref": "#/x", "x": {"$ref": "#/x"}}}, "change it"),
    "more than 64 KB": ({"schema": {"description": "a" * 70_000}}, "at most 64 KB"),
    "nested too deep": ({"schema": deep(5_000)}, "64 KB|less deep"),
    "nested deep": ({"schema": deep(300)}, "change it"),
    "a broken regex": ({"regex": "(a"}, "regex of the answer"),
    "no regex": ({"regex": ""}, "a regular expression"),
    "no choices": ({"choices": []}, "at least one text"),
    "an empty choice": ({"choices": ["a", ""]}, "none of them empty"),
    "a broken grammar": ({"grammar": "root ::= (("}, "grammar of the answer"),
    "two forms": ({"regex": "a", "choices": ["a"]}, "one form of an answer"),
    "no form": ({"form": '{"duck": 1}'}, "one entry"),
}


@pytest.mark.parametrize("form, said", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_kept_is_refused_in_a_sentence(
    forms: AnswerForms, form: dict[str, Any], said: str
) -> None:
    began = perf_counter()
    with pytest.raises(ValueError, match=said) as refused:
        made(forms, **form)
    sentence = str(refused.value)
    assert "\n" not in sentence and len(sentence) < 400 and perf_counter() - began < 5


def test_a_form_that_explodes_ends_the_answer_in_a_sentence(forms: AnswerForms) -> None:
    form = made(forms, regex="(.*a.*b.*c.*){1,50}(.{1,5000}x)")
    with pytest.raises(RuntimeError, match=r"too hard to keep \(too many .*\); simplify it"):
        walk(form, 1, 3_000)
    with pytest.raises(RuntimeError, match="too hard to keep"):
        form.allowed()  # and there is no mask ever after


PAST = 0.06  # seconds of a processor: twice what a mask may take, for the machine may be busy
WORDS = "|".join(f"{number:x} duck {number * 7:x}" for number in range(1_500))
KEYS = {f"key {number}": {"type": "string"} for number in range(1_500)}
HARD: dict[str, dict[str, Any]] = {
    "any JSON": {"json_object": True},
    "an explosion": {"regex": "(.*a.*b.*c.*){1,50}(.{1,5000}x)"},
    "classes of letters": {"regex": r"(\p{L}+[\p{N}\p{P}]*\s?){1,200}"},
    "many words": {"regex": f"({WORDS}){{1,400}}"},
    "many optional keys": {"schema": {"properties": KEYS}},
    "two readings": {"grammar": 'start: a*\na: b | c | b c | c b\nb: /[a-z]+/\nc: /[a-z ]+/'},
}  # fmt: skip


@pytest.fixture(scope="module")
def wide() -> AnswerForms:
    """Of the 1.5B's 151,643 tokens, where its file is here."""
    _, own = open_source("qwen2.5-coder-1.5b" if file_of("qwen2.5-coder-1.5b") else TARGET).tokenizer()
    return AnswerForms(own, len(own) + 3)


@pytest.mark.parametrize("form", HARD.values(), ids=HARD)
def test_no_mask_takes_long(wide: AnswerForms, form: dict[str, Any]) -> None:
    """What would take longer ends the answer."""
    text, longest, masks = GenerationConfig.of(**form).form, 0.0, 0
    assert text is not None
    for seed in range(3):
        draws, one = random.Random(seed), wide.constraint(text)
        with suppress(RuntimeError):
            for _ in range(60):
                began = thread_time()
                there = one.allowed()
                longest, masks = max(longest, thread_time() - began), masks + 1
                token = draws.choice(np.flatnonzero(there).tolist())
                if token == one.end:
                    break
                began = thread_time()
                one.step(token)
                longest = max(longest, thread_time() - began)
    assert masks and longest < PAST


def test_a_known_form_waits_for_no_other_one(forms: AnswerForms) -> None:
    known = GenerationConfig.of(regex="[ab]{3}").form
    assert known is not None
    forms.constraint(known)
    with forms._compiling:  # as while another one is compiled
        assert forms.constraint(known).allows(forms._end) is False


def test_without_the_library_a_sentence_says_so(forms: AnswerForms, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llguidance", None)
    with pytest.raises(FormError, match="need llguidance, which is not installed"):
        AnswerForms(forms._vocabulary, 10).constraint(json.dumps({"regex": "a"}))


def test_a_target_without_an_end_is_refused() -> None:
    with pytest.raises(FormError, match="no end token"):
        AnswerForms(vocabulary([b"a", b"b"]), 2).constraint('{"regex": "a"}')
