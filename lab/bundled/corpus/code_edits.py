"""Code that is asked for by its usual name, small changes to a given function, and what is said after a function was written."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from .base import Example, Pattern
from .code_snippets import (
    CHANGES,
    COMMON,
    COMPACT,
    EMPTY,
    FUNCTION_NAMES,
    OPPOSITES,
    PARAMETER_NAMES,
    SHORT,
    WITH_NUMBER,
    Snippet,
)

_BY_NAME = {snippet.name: snippet for snippet in COMMON}


class Change:
    """A changed function: the words for the instruction, the tests that only the changed one passes, and facts."""

    def __init__(self, new: Snippet, words: dict[str, str], tests: tuple[str, ...] = (), facts: tuple[str, ...] = ()) -> None:
        self.new, self.words, self.facts = new, words, facts
        self.tests = new.tests() + tests


Edit = Callable[[random.Random, Snippet], Change]


def _numbered(rng: random.Random) -> tuple[Snippet, int, int]:
    snippet, low, high = rng.choice(WITH_NUMBER)
    old, new = rng.sample(range(low, high + 1), 2)
    return snippet, old, new


def _with(snippet: Snippet, number: int) -> Snippet:
    text = str(number)
    return replace(snippet, does=snippet.does.replace("K", text), doc=snippet.doc.replace("K", text), body=snippet.body.replace("K", text))


def _any(rng: random.Random) -> Snippet:
    if rng.random() < 0.3:
        snippet, old, _ = _numbered(rng)
        return _with(snippet, old)
    return rng.choice([one for one in COMMON if one.params])


def _of(names: dict[str, object]) -> Callable[[random.Random], Snippet]:
    return lambda rng: _BY_NAME[rng.choice(tuple(names))]


def _rename_function(rng: random.Random, old: Snippet) -> Change:
    name = rng.choice([one for one in FUNCTION_NAMES if one != old.name and one not in dict(old.params)])
    return Change(old.renamed(old.name, name), {"old": old.name, "new": name}, facts=(name,))


def _rename_parameter(rng: random.Random, old: Snippet) -> Change:
    param, kind = rng.choice(old.params)
    taken = old.body + old.name
    name = rng.choice([one for one in PARAMETER_NAMES[kind] if one not in dict(old.params) and one not in taken])
    new = replace(
        old.renamed(param, name), doc=old.renamed(param, name).doc if f" {param} " in f" {old.doc[:-1]} " and len(param) < 3 else old.doc
    )
    call = ", ".join(f"{key}={value!r}" for (key, _), value in zip(new.params, new.calls[0], strict=True))
    return Change(new, {"old": param, "new": name}, (f"assert {new.name}({call}) == {new.results()[0][1]!r}",), (name,))


def _docstring(rng: random.Random, old: Snippet) -> Change:
    return Change(replace(old, documented=True), {}, (f"assert {old.name}.__doc__",))


def _no_docstring(rng: random.Random, old: Snippet) -> Change:
    return Change(replace(old, documented=False), {}, (f"assert not {old.name}.__doc__",))


def _hints(rng: random.Random, old: Snippet) -> Change:
    tests = tuple(f"assert {old.name}.__annotations__[{key!r}] is {kind}" for key, kind in (*old.params, ("return", old.result)))
    return Change(replace(old, hinted=True), {}, tests)


def _changed(rng: random.Random, old: Snippet) -> Change:
    say, body, doc = rng.choice(CHANGES[old.name])
    return Change(replace(old, body=body, doc=doc), {"change": say})


def _opposite(rng: random.Random, old: Snippet) -> Change:
    body, doc = OPPOSITES[old.name]
    return Change(replace(old, body=body, doc=doc), {})


def _empty(rng: random.Random, old: Snippet) -> Change:
    value, param = EMPTY[old.name], old.params[0][0]
    new = replace(old, body=f"if not {param}:\n    return {value}\n{old.body}")
    return Change(new, {"value": value, "param": param}, (f"assert {old.name}([]) == {value}",))


def _comprehension(rng: random.Random, old: Snippet) -> Change:
    return Change(replace(old, body=SHORT[old.name]), {})


def _loop(rng: random.Random, new: Snippet) -> Change:
    return Change(new, {})


def _compact(rng: random.Random, old: Snippet) -> Change:
    return Change(replace(old, body=COMPACT[old.name]), {})


def _default(rng: random.Random, old: Snippet) -> Change:
    value = rng.randint(1, 20)
    new = replace(old, default=str(value))
    first = new.calls[0][:-1]
    shown = ", ".join(map(repr, first))
    space: dict[str, Callable[..., object]] = {}
    exec(new.source(), space)
    return Change(new, {"param": old.params[-1][0], "value": str(value)}, (f"assert {new.name}({shown}) == {space[new.name](*first)!r}",))


_LAST_INT = tuple(
    snippet for snippet in COMMON if snippet.params and snippet.params[-1][1] == "int" and snippet.name not in ("gcd", "swap")
)

# edit -> (which functions it fits, the edit, how to ask for it)
EDITS: dict[str, tuple[Callable[[random.Random], Snippet], Edit, tuple[str, ...]]] = {
    "rename_function": (_any, _rename_function, (
        "Rename the function {old} to {new}.", "Rename this function to {new}.", "Call the function {new} instead of {old}.",
        "The name should be {new}.", "change the function name to {new}", "Give this function the name {new}.", "rename {old} -> {new}",
        "I want this to be called {new}.",
    )),
    "rename_parameter": (_any, _rename_parameter, (
        "Rename the parameter {old} to {new}.", "Rename {old} to {new}.", "Use {new} instead of {old} as the parameter name.",
        "change the variable {old} to {new}", "The argument {old} should be named {new}.", "replace {old} by {new} everywhere",
    )),
    "docstring": (_any, _docstring, (
        "Add a docstring.", "Add a docstring to this function.", "Please write a docstring for this.", "This has no docstring. Add one.",
        "document this function", "Can you add a short docstring?",
    )),
    "undocument": (_any, _no_docstring, ("Remove the docstring.", "Delete the docstring, please.", "I do not need the docstring here.")),
    "hints": (_any, _hints, (
        "Add type hints.", "Add type hints to this function.", "Annotate the parameters and the result.", "Can you add types to this?",
        "with type hints please", "Put in the type annotations.",
    )),
    "change": (_of({**CHANGES}), _changed, (
        "Change this function: it should {change}.", "Change it so that it will {change}.", "This should {change}.",
        "Make it {change}.", "I want it to {change}.", "edit this so that it will {change}",
    )),
    "opposite": (_of({**OPPOSITES}), _opposite, (
        "Make it return the opposite.", "Turn the condition around.", "Negate the result of this function.",
        "It should be True where it is False now, and the other way round.", "reverse the check",
    )),
    "empty": (_of({**EMPTY}), _empty, (
        "Make it return {value} if {param} is empty.", "Also handle the empty case: return {value}.",
        "This fails when {param} is empty. Return {value} then.", "Add a check for empty {param} that returns {value}.",
    )),
    "comprehension": (_of({**SHORT}), _comprehension, (
        "Turn the loop into a list comprehension.", "Use a list comprehension here.", "Rewrite this with a comprehension.",
        "Replace the loop by a list comprehension.", "do this with a list comprehension",
    )),
    "loop": (_of({**SHORT}), _loop, (
        "Use a normal loop instead of the list comprehension.", "Write the comprehension as a for loop.",
        "I do not like comprehensions. Use a loop.",
        "rewrite this with a for loop",
    )),
    "compact": (_of({**COMPACT}), _compact, (
        "Make this shorter.", "Can you shorten this function?", "Simplify this code.", "This is too long. Write it in one line.",
        "shorter version please",
    )),
    "default": (lambda rng: rng.choice(_LAST_INT), _default, (
        "Give {param} the default value {value}.", "Make {param} optional, with {value} as the default.",
        "The default of {param} should be {value}.", "set {param} to {value} by default",
    )),
}  # fmt: skip
_NUMBER_WORDS = (
    "Change {old} to {new}.", "Use {new} instead of {old}.", "Replace the number {old} by {new}.", "It should be {new}, not {old}.",
    "make it {new} instead of {old}", "The number should be {new}.",
)  # fmt: skip
_FIX_WORDS = (
    "Fix this code.", "There is a mistake in this function. Find it.", "Why does this not work? Correct it.", "Repair this function.",
    "This gives an error. Can you fix it?", "find the bug",
)  # fmt: skip
_EXPLAIN_WORDS = (
    "What does this code do?", "Explain this function in one sentence.", "What is this function for?", "explain this",
    "Can you tell me what this does?", "What happens here?", "Describe this code.", "I do not understand this function.",
)  # fmt: skip
_CALL_WORDS = (
    "What does {call} return?", "What is the result of {call}?", "What do I get for {call}?", "Tell me the value of {call}.",
)  # fmt: skip
COMMON_WORDS = (
    "{name} in Python", "python {name}", "Show me {name} in Python.", "Code to {do}, please.", "I want Python code to {do}.",
    "Can you write {name} for me?", "python code: {do}", "How would you {do} in Python?", "A function to {do}, please.",
    "write me a python function to {do}", "Help me to {do} with Python.", "What does a function look like to {do}?",
    "I am learning Python. Show me how to {do}.", "Please code {name}.", "I have to {do}. Write the code.", "{do} python",
)  # fmt: skip


def _given(rng: random.Random, instruction: str, code: str) -> str:
    """The instruction and the code, as people put them together."""
    if rng.random() < 0.12:
        instruction = instruction[0].lower() + instruction[1:].rstrip(".")
    if rng.random() < 0.25:
        code = f"```python\n{code}\n```"
    return f"{instruction}\n{code}" if rng.random() < 0.65 else f"{code}\n{instruction}"


def _before(edit: str, rng: random.Random, snippet: Snippet) -> Snippet:
    """How the function looks that is to be changed."""
    if edit in ("docstring", "undocument"):
        return replace(snippet, documented=edit == "undocument")
    if edit == "loop":
        snippet = replace(snippet, body=SHORT[snippet.name])
    return replace(snippet, documented=rng.random() < 0.6)


def _edit(rng: random.Random, *, pattern: str, edit: str, template: str) -> Example:
    fits, change, _ = EDITS[edit]
    whole = fits(rng)
    old = _before(edit, rng, whole)
    done = change(rng, replace(whole, documented=old.documented) if edit == "loop" else old)
    prompt = _given(rng, template.format(**done.words), old.source())
    return Example("code", pattern, ((prompt, done.new.source()),), done.facts, tests=done.tests)


def _number(rng: random.Random, *, pattern: str, template: str) -> Example:
    snippet, old, new = _numbered(rng)
    snippet = replace(snippet, documented=rng.random() < 0.6)
    done = _with(snippet, new)
    prompt = _given(rng, template.format(old=old, new=new), _with(snippet, old).source())
    facts = (str(new),)
    return Example("code", pattern, ((prompt, done.source()),), facts, tests=done.tests())


def _broken(rng: random.Random, code: str) -> str:
    """The code with one slip that every beginner makes."""
    head, _, rest = code.partition("\n")
    slips = [
        f"{head[:-1]}\n{rest}",
        code.replace("return ", "retrun ", 1),
        code.replace("):\n", ":\n", 1),
        code.replace("return ", "Return ", 1),
    ]
    if " == " in code:
        slips.append(code.replace(" == ", " = ", 1))
    if "\n    return" in code and '"""' not in code:
        slips.append(code.replace("\n    return", "\nreturn", 1))
    return rng.choice([slip for slip in slips if slip != code])


def _fix(rng: random.Random, *, pattern: str, template: str) -> Example:
    snippet = replace(_any(rng), documented=False)
    prompt = _given(rng, template, _broken(rng, snippet.source()))
    return Example("code", pattern, ((prompt, snippet.source()),), (snippet.name,), tests=snippet.tests())


def _explanation(snippet: Snippet) -> str:
    return f"The function {snippet.name} {snippet.does}."


def _explain(rng: random.Random, *, pattern: str, template: str) -> Example:
    snippet = replace(_any(rng), documented=rng.random() < 0.3)
    return Example("code", pattern, ((_given(rng, template, snippet.source()), _explanation(snippet)),), (snippet.name, snippet.does))


def _result(rng: random.Random, *, pattern: str, template: str) -> Example:
    snippet = _any(rng)
    call, result = rng.choice(snippet.results())
    prompt = _given(rng, template.format(call=call), replace(snippet, documented=False).source())
    return Example("code", pattern, ((prompt, f"{call} returns {result!r}."),), (call, f"returns {result!r}"))


def _wish(rng: random.Random, snippet: Snippet, template: str) -> str:
    prompt = template.format(name=snippet.name, do=snippet.do)
    roll = rng.random()
    if roll < 0.1:
        return prompt[0].lower() + prompt[1:]
    return prompt.rstrip(".?") if roll < 0.2 else prompt


def _common(rng: random.Random, *, pattern: str, template: str, group: tuple[Snippet, ...]) -> Example:
    snippet = rng.choice(group)
    return Example("code", pattern, ((_wish(rng, snippet, template), snippet.source()),), (), tests=snippet.tests())


FOLLOWS: dict[str, tuple[str, ...]] = {
    "rename_function": ("Rename it to {new}.", "Call it {new}.", "rename the function to {new}", "The name should be {new}, please."),
    "rename_parameter": ("Rename {old} to {new}.", "Use {new} instead of {old}.", "call the parameter {new}, not {old}"),
    "undocument": ("Remove the docstring.", "without the docstring please", "Now without a docstring."),
    "hints": ("Add type hints.", "Now with type hints.", "with types please", "Can you add the types?"),
    "change": ("Now it should {change}.", "Change it so that it will {change}.", "and now {change}", "Can it {change} instead?"),
    "opposite": ("Now the opposite.", "Make it return the opposite.", "And the other way round?"),
    "empty": (
        "And if {param} is empty? Return {value} then.",
        "Return {value} if {param} is empty.",
        "handle the empty case, return {value}",
    ),
    "comprehension": ("Now with a list comprehension.", "Use a list comprehension.", "can you do that with a comprehension"),
    "compact": ("Make it shorter.", "shorter", "Shorter, please.", "Is there a shorter way?", "Can you simplify it?"),
    "default": ("Give {param} the default value {value}.", "make {param} optional, default {value}"),
}
_EXPLAIN_AFTER = (
    "Explain it.",
    "Explain it, please.",
    "what does it do?",
    "How does it work?",
    "Can you explain that in one sentence?",
    "why?",
)
_CALL_AFTER = (
    "Give me an example call.", "How do I call it?", "Show me an example.", "example?", "How do I use this?", "an example call please",
)  # fmt: skip
_DOC_AFTER = ("Add a docstring.", "Now add a docstring.", "with a docstring please", "Can you document it?")
_FIRST = tuple(template for template in COMMON_WORDS if template != "{do} python")


def _follow(rng: random.Random, *, pattern: str, edit: str, template: str) -> Example:
    fits, change, _ = EDITS[edit]
    old = fits(rng)
    while old.name not in _BY_NAME:
        old = fits(rng)
    done = change(rng, old)
    first = (_wish(rng, old, rng.choice(_FIRST)), old.source())
    return Example("code", pattern, (first, (template.format(**done.words), done.new.source())), done.facts, tests=done.tests)


def _follow_doc(rng: random.Random, *, pattern: str, template: str) -> Example:
    snippet = rng.choice(COMMON)
    wish = _wish(rng, snippet, rng.choice(_FIRST)).rstrip(".") + rng.choice((" without a docstring", ", no docstring", ", no comments"))
    tests = (*snippet.tests(), f"assert {snippet.name}.__doc__")
    return Example("code", pattern, ((wish, replace(snippet, documented=False).source()), (template, snippet.source())), tests=tests)


def _follow_said(rng: random.Random, *, pattern: str, template: str, explain: bool) -> Example:
    snippet = rng.choice([one for one in COMMON if one.params])
    first = (_wish(rng, snippet, rng.choice(_FIRST)), snippet.source())
    if explain:
        return Example("code", pattern, (first, (template, _explanation(snippet))), (snippet.name, snippet.does))
    call, result = snippet.results()[0]
    return Example("code", pattern, (first, (template, f"For example, {call} returns {result!r}.")), (snippet.name + "(",))


def _patterns() -> dict[str, Pattern]:
    table: dict[str, Pattern] = {}

    def add(task: str, templates: tuple[str, ...], make: Callable[..., Example], **fixed: object) -> None:
        for i, template in enumerate(templates):
            name = f"code/{task}/{i}"
            table[name] = partial(make, pattern=name, template=template, **fixed)

    for edit, (_, _, templates) in EDITS.items():
        add(f"edit_{edit}", templates, _edit, edit=edit)
    add("edit_number", _NUMBER_WORDS, _number)
    add("edit_fix", _FIX_WORDS, _fix)
    add("edit_explain", _EXPLAIN_WORDS, _explain)
    add("edit_result", _CALL_WORDS, _result)
    # A task for every few functions, so that the usual ones are met as often as the others.
    for start in range(0, len(COMMON), 4):
        add(f"common_{start // 4}", COMMON_WORDS, _common, group=COMMON[start : start + 4])
    for edit, templates in FOLLOWS.items():
        add(f"follow_{edit}", templates, _follow, edit=edit)
    add("follow_docstring", _DOC_AFTER, _follow_doc)
    add("follow_explain", _EXPLAIN_AFTER, _follow_said, explain=True)
    add("follow_call", _CALL_AFTER, _follow_said, explain=False)
    return table


PATTERNS: dict[str, Pattern] = _patterns()
