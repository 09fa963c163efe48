"""Forms of answers by llguidance: a JSON schema, a regular expression, a list of choices or a grammar."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omnidemo.core.config.refusals import shortened
from omnidemo.decoding.constraint import Constraint
from omnidemo.vocabulary.vocabulary import Vocabulary

COMPILED = 32  # forms that are kept
# A mask takes at most some 30 ms: the library uses up about 14,000 of the lexer's fuel and 20,000 of the
# parser's items in a millisecond. A form that needs more ends its answer.
LIMITS: dict[str, Any] = {
    "step_lexer_fuel": 200_000, "step_max_items": 50_000, "max_grammar_size": 100_000,
    "verbose_errors": False,
}  # fmt: skip
# `", "` and `": "` on one line: the model cannot write spaces without end, and most of the text is forced
ONE_LINE = {
    "whitespace_flexible": False, "item_separator": ", ", "key_separator": ": ", "coerce_one_of": False,
    "lenient": False,
}  # fmt: skip
# any object: no key is forced, so the model may lay it out by itself
FREE = ONE_LINE | {
    "whitespace_flexible": True, "whitespace_pattern": r"[\x20\x0A]{1,8}", "item_separator": ",",
    "key_separator": ":",
}  # fmt: skip
# eight floats by the bits of a byte: +∞ where a bit is set, which leaves a logit as it is, else −∞
BOUNDS = np.where(
    np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little") > 0, np.inf, -np.inf
).astype(np.float32)  # fmt: skip


class FormError(ValueError):
    """A form that no answer of this target can be held to. The message is one sentence."""


class AnswerForms:
    """The forms of a target's answers. llguidance is imported, and reads the vocabulary, with the first one,
    in about a second."""

    def __init__(self, vocabulary: Vocabulary, rows: int) -> None:
        self._vocabulary, self._rows = vocabulary, rows
        # two, so that an answer that begins, and has the pair's lock, waits for no form that is compiled
        self._lock, self._compiling = threading.Lock(), threading.Lock()
        self._tokenizer: Any = None
        self._compiled: OrderedDict[str, Any] = OrderedDict()  # matchers at the beginning, by form

    def constraint(self, form: str) -> GuidedConstraint:
        """A new constraint of a form: JSON text, as `GenerationConfig.form`. FormError where there
        is none."""
        with self._lock:
            matcher = self._compiled.get(form)
        if matcher is None:
            with self._compiling:
                matcher = self._compile(json.loads(form))
        with self._lock:
            self._compiled[form] = matcher
            self._compiled.move_to_end(form)
            while len(self._compiled) > COMPILED:
                self._compiled.popitem(last=False)
        return GuidedConstraint(matcher.deep_copy(), self._rows, self._end)

    @property
    def _end(self) -> int:
        ends = self._vocabulary.roles.get("end", ())
        if not ends:
            raise FormError("this target has no end token, so its answers cannot be held to a form")
        return ends[0]

    def _compile(self, form: Mapping[str, Any]) -> Any:
        """A matcher at the beginning of the form. Its first mask is computed: some forms fail only there."""
        try:
            from llguidance import LLMatcher, LLParserLimits, LLTokenizer
        except ImportError:
            raise FormError(
                "answers of a given form need llguidance, which is not installed; pip install llguidance"
            ) from None
        end = self._end
        if self._tokenizer is None:
            tokens: Any = _Tokens(self._vocabulary, self._rows, end)
            self._tokenizer = LLTokenizer(tokens, self._rows, [end])
        [(kind, wanted)] = form.items()
        try:
            grammar = _grammar(LLMatcher, kind, wanted)
        except Exception as error:  # its converters raise errors of their own
            raise _refused(kind, str(error)) from None
        matcher = LLMatcher(self._tokenizer, grammar, log_level=0, limits=LLParserLimits(**LIMITS))
        if not matcher.is_error():
            matcher.compute_bitmask()
        if matcher.is_error():
            raise _refused(kind, matcher.get_error())
        return matcher


def _grammar(library: Any, kind: str, wanted: Any) -> str:
    """The library's text of a form."""
    if kind == "json_object":
        return str(library.grammar_from_json_schema({"type": "object"}, overrides=FREE))
    if kind == "schema":
        # the library would obey these options of a client
        own = {key: value for key, value in wanted.items() if key != "x-guidance"}
        return str(library.grammar_from_json_schema(own, overrides=ONE_LINE))
    if kind == "regex":
        return str(library.grammar_from_regex(wanted))
    if kind == "choices":
        return str(library.grammar_from_lark("start: " + " | ".join(json.dumps(each) for each in wanted)))
    from llguidance.gbnf_to_lark import any_to_lark

    return str(library.grammar_from_lark(any_to_lark(wanted)))


def _refused(kind: str, said: str) -> FormError:
    return FormError(f"the {kind} of the answer cannot be used ({_reason(said)}); change it")


def _reason(said: str) -> str:
    """The library's words, which take several lines with an excerpt."""
    said = " ".join(said.replace("<non-verbose/>", "").split())
    said = (said.rpartition(" error: ")[2] or said).partition(". Enable '")[0]  # an option of the library
    return shortened(said.rstrip("."))


class _Tokens:
    """A vocabulary as llguidance reads it: bytes of every id, control tokens behind a byte 255."""

    is_tokenizer_wrapper = True
    bos_token_id = None

    def __init__(self, vocabulary: Vocabulary, rows: int, end: int) -> None:
        self._vocabulary = vocabulary
        control = {token: name for name, token in vocabulary.control.items()} | {end: "<end>"}
        self.tokens = [
            b"\xff" + control[token].encode() if token in control else vocabulary.writes(token)
            for token in range(rows)
        ]
        self.eos_token_id, self.special_token_ids = end, sorted(control)

    def __call__(self, text: str) -> list[int]:
        data = text.encode()
        return list(self._vocabulary.encode(data) or self._vocabulary.spell(data) or ())


class GuidedConstraint(Constraint):
    """A constraint by llguidance. An error of the library, such as a limit, is a RuntimeError of one
    sentence: it ends the answer, which never goes on without a mask."""

    def __init__(self, matcher: Any, rows: int, end: int) -> None:
        self._matcher, self._tokens, self.end = matcher, rows, end
        self._bounds = np.empty((-(-rows // 8), 8), np.float32)  # by the bytes of a mask

    def _bytes(self) -> NDArray[np.uint8]:
        """[T / 8]: the mask as bits."""
        bits = np.frombuffer(self._matcher.compute_bitmask(), np.uint8)[: len(self._bounds)]
        self._check()
        return bits

    def _check(self) -> None:
        if self._matcher.is_error():
            why = _reason(self._matcher.get_error())
            raise RuntimeError(f"the form of the answer became too hard to keep ({why}); simplify it")

    def allowed(self) -> NDArray[np.bool_]:
        return np.unpackbits(self._bytes(), bitorder="little")[: self._tokens].astype(np.bool_)

    def mask(self, row: NDArray[Any], into: NDArray[Any]) -> None:
        if forced := self._matcher.compute_ff_tokens():
            into.fill(-np.inf)
            into[forced[0]] = row[forced[0]]
            return
        BOUNDS.take(self._bytes(), axis=0, out=self._bounds, mode="clip")
        np.minimum(row, self._bounds.reshape(-1)[: len(row)], out=into)

    def allows(self, token: int) -> bool:
        # `validate_tokens` alone would also take other spellings of forced text
        if forced := self._matcher.compute_ff_tokens():
            return bool(token == forced[0])
        if token == self.end:
            return bool(self._matcher.is_accepting())
        return bool(self._matcher.validate_tokens([token]) == 1)

    def step(self, token: int) -> None:
        self._matcher.consume_token(token)
        self._check()

    def back(self, count: int) -> None:
        if count:
            self._matcher.rollback(count)
            self._check()

    def forced(self, most: int) -> list[int]:
        found: list[int] = self._matcher.compute_ff_tokens()[: max(0, most)]
        if len(found) < most:  # the end is forced where nothing else can follow
            read = self._matcher.try_consume_tokens(found)
            ended = read == len(found) and self._matcher.is_stopped() and self._matcher.is_accepting()
            self.back(read)
            found = [*found, self.end] if ended else found
        self._check()
        return found
