"""Conversations of several turns: follow-ups that need what was said before, and chains that change the subject."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import partial

from . import chat_fact_tables as ft
from . import chat_tables as t
from .chat_held_out import HELD_OUT
from .chat_jokes import JOKES, RIDDLES
from .chat_style import Draw, Piece, Slots, Task, fill, is_trained, offered, piece, typed
from .lexicon import BOYS, GIRLS, a

# A follow-up gives the turns before and the last piece, for the wording it is called with.
Follow = Callable[[random.Random, str], tuple[list[Piece], Piece]]


class Talk:
    """The tasks of single turns by name; draws trained wordings for the turns of longer chats."""

    def __init__(self, tasks: Mapping[str, Task]) -> None:
        self.tasks = dict(tasks)
        self.trained = {
            name: tuple(prompt for i, prompt in enumerate(task.prompts) if f"chat/{name}/{i}" not in HELD_OUT)
            for name, task in tasks.items()
        }

    def one(self, rng: random.Random, *names: str) -> Piece:
        """A piece of one of the named tasks, never a prompt of another split."""
        while True:
            name = rng.choice(names or tuple(self.tasks))
            drawn = piece(rng, self.tasks[name], rng.choice(self.trained[name]))
            if is_trained(drawn.asked):
                return drawn

    def refusal(self, rng: random.Random) -> Piece:
        return self.one(rng, *(name for name in self.tasks if name.startswith("out_")))


def _asked(rng: random.Random, wording: str, slots: Slots | None = None, typos: bool = True) -> str:
    return typed(rng, wording, slots or {}, typos)


def _echo(rng: random.Random, wording: str, draw: Draw, short: str = "x") -> tuple[Slots, str]:
    """A short question about a drawn word that is no prompt of another split."""
    while True:
        slots = draw(rng)
        asked = _asked(rng, wording, {"x": slots[short]}, typos=False)
        if is_trained(asked):
            return slots, asked


def follow_ups(talk: Talk, facts: tuple[str, ...]) -> dict[str, tuple[tuple[str, ...], Follow]]:
    """Every task with its wordings and the way to make one; `facts` names the tasks of everyday facts."""

    def after_refusal(answers: tuple[str, ...], said: tuple[str, ...]) -> Follow:
        def make(rng: random.Random, wording: str) -> tuple[list[Piece], Piece]:
            return [talk.refusal(rng)], Piece(_asked(rng, wording), rng.choice(answers), said)

        return make

    def after_any(answers: tuple[str, ...], said: tuple[str, ...]) -> Follow:
        def make(rng: random.Random, wording: str) -> tuple[list[Piece], Piece]:
            return [talk.one(rng)], Piece(_asked(rng, wording), rng.choice(answers), said)

        return make

    def as_task(name: str, before: Callable[[random.Random], Piece]) -> Follow:
        def make(rng: random.Random, wording: str) -> tuple[list[Piece], Piece]:
            return [before(rng)], piece(rng, talk.tasks[name]._replace(lead=False), wording)

        return make

    def sure(rng: random.Random, wording: str) -> tuple[list[Piece], Piece]:
        known = talk.one(rng, *facts)
        return [known], Piece(_asked(rng, wording), f"Yes, I am sure. {known.answer}", ("I am sure", *known.facts))

    def again(rng: random.Random, wording: str) -> tuple[list[Piece], Piece]:
        known = talk.one(rng, *facts, "who", "demo_how", "demo_drafter", "can", "out_capital", "out_weather")
        return [known], Piece(_asked(rng, wording), known.answer, known.facts)

    def offer_taken(rng: random.Random, wording: str) -> tuple[list[Piece], Piece]:
        offer = offered(rng)
        while "joke" in offer.do:
            offer = offered(rng)
        first = talk.one(rng, "greet", "thanks", "how_are", "ok", "praise", "bored") if rng.random() < 0.4 else talk.refusal(rng)
        said = first.answer.split(" I can ")[0].split(" But I can ")[0]
        first = first._replace(answer=f"{said} {rng.choice(('I can', 'But I can'))} {offer.do}.")
        return [first], Piece(_asked(rng, wording), f"Just type it, for example: {offer.request}", ("type it", offer.request.rstrip(".?")))

    def joke_taken(rng: random.Random, wording: str) -> tuple[list[Piece], Piece]:
        first = talk.one(rng, "greet", "thanks", "how_are", "ok", "praise", "bored", "sad") if rng.random() < 0.5 else talk.refusal(rng)
        said = first.answer.split(" I can ")[0].split(" But I can ")[0]
        asked = rng.choice(("Shall I tell you a joke?", "Would you like to hear a joke?", "I can tell you a joke, if you like."))
        joke = " ".join(rng.choice(JOKES))
        return [first._replace(answer=f"{said} {asked}")], Piece(_asked(rng, wording), f"Here is a joke: {joke}", ("here is a joke",))

    def another(kind: str) -> Follow:
        def make(rng: random.Random, wording: str) -> tuple[list[Piece], Piece]:
            first, second, third = rng.sample({"joke": JOKES, "riddle": RIDDLES, "fact": ft.FUN_FACTS}[kind], 3)
            texts = [
                f"{one}." if kind == "fact" else " ".join(one) if kind == "joke" else f"{one[0]} The answer is {one[1]}."
                for one in (first, second, third)
            ]
            start = talk.one(rng, {"fact": "fun_fact"}.get(kind, kind))._replace(answer=f"Here is a {kind}: {texts[0]}")
            said = (f"here is another {kind}",)
            turns = [start]
            if rng.random() < 0.3:
                turns.append(Piece(_asked(rng, "Another one"), f"Here is another {kind}: {texts[1]}", said))
            if rng.random() < 0.25:
                turns.append(talk.one(rng, "wow"))
                wording = fill(wording, {"again": f"another {kind}"}) if "{again}" in wording else f"Another {kind}, please."
            asked = fill(wording, {"again": "another one", "kind": kind})
            return turns, Piece(_asked(rng, asked), f"Here is another {kind}: {texts[2]}", said)

        return make

    def no_more(rng: random.Random, wording: str) -> tuple[list[Piece], Piece]:
        names = (*facts, "demo_how", "demo_speculative", "demo_drafter", "demo_colours", "who", "made")
        answers = ("That is all I know about it. Ask me something else!", "I am afraid that is all I know about it.")
        return [talk.one(rng, *names)], Piece(_asked(rng, wording), rng.choice(answers), ("all I know",))

    def either(name: str, words: tuple[str, ...], answer: str, said: tuple[str, ...]) -> Follow:
        def make(rng: random.Random, wording: str) -> tuple[list[Piece], Piece]:
            slots, asked = _echo(rng, wording, lambda rng: {"x": rng.choice(words)})
            return [talk.one(rng, name)], Piece(asked, fill(answer, slots), tuple(fill(fact, slots) for fact in said))

        return make

    def same_again(name: str, short: str = "x") -> Follow:
        """The same question about another word: "And a cow?"."""

        def make(rng: random.Random, wording: str) -> tuple[list[Piece], Piece]:
            task = talk.tasks[name]
            slots, asked = _echo(rng, wording, task.slots, short)
            answer = fill(task.answers[0], slots)
            last = Piece(asked, answer[0].upper() + answer[1:], tuple(fill(fact, slots) for fact in task.facts))
            first = talk.one(rng, name)
            while first.answer == last.answer:
                first = talk.one(rng, name)
            return [first], last

        return make

    def my_name(rng: random.Random, wording: str) -> tuple[list[Piece], Piece]:
        name = rng.choice(GIRLS + BOYS)
        told = piece(rng, talk.tasks["my_name"]._replace(slots=lambda _: {"x": name}), rng.choice(talk.trained["my_name"]))
        between = [talk.one(rng) for _ in range(rng.choice((0, 0, 1, 1, 2)))]
        return [told, *between], Piece(_asked(rng, wording), rng.choice((f"Your name is {name}.", f"You are {name}.")), (name,))

    def my_home(rng: random.Random, wording: str) -> tuple[list[Piece], Piece]:
        home = rng.choice(t.CITIES + t.COUNTRIES)
        told = piece(rng, talk.tasks["my_home"]._replace(slots=lambda _: {"x": home}), rng.choice(("I live in {x}.", "My home is in {x}.")))
        between = [talk.one(rng) for _ in range(rng.choice((0, 0, 1)))]
        return [told, *between], Piece(_asked(rng, wording), f"You live in {home}.", (f"in {home}",))

    def my_pet(rng: random.Random, wording: str) -> tuple[list[Piece], Piece]:
        pet = a(rng.choice(t.PETS))
        told = piece(rng, talk.tasks["pet"]._replace(slots=lambda _: {"x": pet}), rng.choice(("I have {x}.", "We have {x} at home.")))
        between = [talk.one(rng) for _ in range(rng.choice((0, 0, 1)))]
        return [told, *between], Piece(_asked(rng, wording), f"You have {pet}.", (f"have {pet}",))

    def last_question(rng: random.Random, wording: str) -> tuple[list[Piece], Piece]:
        turns = [talk.one(rng) for _ in range(rng.choice((1, 1, 2)))]
        return turns, Piece(_asked(rng, wording), f"You wrote: {turns[-1].asked}", (turns[-1].asked,))

    def first_question(rng: random.Random, wording: str) -> tuple[list[Piece], Piece]:
        turns = [talk.one(rng) for _ in range(rng.choice((2, 2, 3)))]
        return turns, Piece(_asked(rng, wording), f"You began with: {turns[0].asked}", (turns[0].asked,))

    def next_in_line(task: str, key: str) -> Follow:
        """Monday, and then, and then."""

        def make(rng: random.Random, wording: str) -> tuple[list[Piece], Piece]:
            names = ft.DAYS if key == "day" else ft.MONTHS
            i = rng.randrange(len(names))
            x, y, z = (names[(i + step) % len(names)] for step in range(3))
            first = fill(rng.choice(talk.trained[task]), {"x": x})
            return [Piece(first, f"{y} comes after {x}.", ())], Piece(_asked(rng, wording), f"{z} comes after {y}.", (z, y))

        return make

    because = (
        "Because I am a small language model and was trained on other things, such as stories and small sums.",
        "I am a small language model, and I was trained on stories, sums and everyday things only.",
    )
    firm = ("Yes, I am sure. I would only guess, and that would not help you.", "I am sure. I would rather say nothing than guess.")
    fine = ("No problem! What would you like to do?", "No problem. We can do something else.")
    guess = ("I would rather not guess, because it would be wrong.", "My guess would be wrong, so I would rather not.")
    unclear = (
        "I am sorry that I was not clear. I cannot help with that, but you may ask me something else.",
        "I am sorry, that was not clear. I mean that I cannot help with that.",
    )
    gone = ("All right, let us try something else. What would you like to do?", "Then let us try something else.")
    known = ("Good to know. I still learn nothing while we talk, but thank you!", "Thank you for telling me! It is good to know.")
    yes = ("Yes", "Yes please", "Ok", "Sure", "Ok do that", "Yes, do that", "Please do", "Do it", "Go ahead", "Yeah, go on", "Why not",
    "Good idea",
           "That would be nice", "I would like that", "Alright, do that", "ok go", "Let us do that", "Show me", "Try it", "Sounds good",
           "y",
           "yes plz", "Of course", "Do that please", "Then do it")  # fmt: skip
    more = ("{again}", "{again} please", "Tell me {again}.", "One more", "One more please", "Again", "More", "Give me {again}.", "Next one",
    "Next",
            "Do you have more?", "Can I have one more?", "More please", "Do you know {again}?", "I want {again}.",
            "A different one")  # fmt: skip
    and_x = ("And {x}?", "What about {x}?", "And what about {x}?", "How about {x}?", "{x}?", "And for {x}?", "Ok, and {x}?", "Now {x}.",
    "Then {x}?",
             "The same for {x}.", "and {x}", "{x} too?", "And now {x}?")  # fmt: skip
    and_of = ("And of {x}?", "And the one of {x}?", *and_x)
    why = ("Why?", "Why not?", "How come?", "Why do you not know that?", "Why can you not do that?", "But why?", "Why is that?",
    "What is the reason?",
           "Explain why not.", "Why don't you know?", "why cant u", "Really, why?", "Why can't you?", "You should know that.",
           "A computer should know that.", "How can you not know that?", "Everybody knows that.", "Tell me why.")  # fmt: skip
    then_can = ("Ok then what can you do?", "What can you do then?", "Then what do you know?", "So what can you do?",
    "What do you know then?",
                "What can I ask you then?", "Is there anything that you can do?", "But what can you do?", "Well, what are you good at?",
                "What do you know at all?", "Do you know anything?", "What can you help me with?", "ok so what can u do", "What then?",
                "Then tell me what you can do.", "And what can you answer?", "What else?", "What would work?")  # fmt: skip
    you_sure = ("Are you sure?", "Really?", "Is that right?", "Is that true?", "Are you certain?", "You sure?", "Is that correct?", "Sure?",
    "Are you sure about that?",
                "Can that be right?", "Honestly?", "I do not believe you.", "Is it really so?", "r u sure")  # fmt: skip
    return {
        "why": (why, after_refusal(because, ("small language model", "trained"))),
        "then_can": (then_can, as_task("can", talk.refusal)),
        "sure_not": (you_sure, after_refusal(firm, ("I am sure", "guess"))),
        "sure": (you_sure, sure),
        "guess": (("Just guess.", "Guess!", "Try it.", "Please try.", "Make a guess.", "What would you guess?", "Give it a try.",
        "Take a guess.",
                   "Try anyway.", "You can guess.", "Just try."),
                  after_refusal(guess, ("rather not", "would be wrong"))),
        "told": (("It is famous.", "Now you know it.", "I will tell you.", "I know the answer.", "I can tell you.",
        "Let me explain it to you.",
                  "I looked it up.", "I found it online.", "Then I tell you."),
                 after_refusal(known, ("good to know",))),
        "yes": (yes, offer_taken),
        "yes_joke": ((*yes, "A joke, yes!", "Yes, tell me a joke.", "Tell me", "I am listening", "Let me hear it"), joke_taken),
        "no_thanks": (("No", "No thanks", "No, thank you.", "Not now", "Maybe later", "Never mind", "nah", "No, something else.",
        "I do not want that.",
                       "nevermind", "Forget it", "Nope", "Then not", "Skip it", "Leave it", "It does not matter.", "Ok, forget it."),
                      after_refusal(fine, ("no problem",))),
        "what": (("What?", "I do not understand.", "What do you mean?", "Huh?", "I don't get it.", "Sorry?", "That is not clear.",
        "What does that mean?",
                  "Pardon?", "What do you mean by that?", "wdym", "Can you explain that?", "I do not follow."),
                 after_refusal(unclear, ("sorry", "clear"))),
        "pity": (("That is a pity.", "Too bad.", "What a shame.", "Sad.", "Oh no.", "That is disappointing.", "Hm, too bad", "That is sad.",
        "Pity!",
                  "I hoped you would know.", "Ok", "Oh", "I see", "Hm", "ok then", "Alright", "Fine", "Well then", "too bad lol"),
                 after_refusal(gone, ("let us try something else",))),
        "thanks": (talk.trained["thanks"][:20], as_task("thanks", talk.one)),
        "thanks_anyway": (("Thanks anyway", "Ok, thanks", "Thanks for trying.", "Thank you anyway.", "No worries, thanks.", "Ok thank you",
        "thx anyway"),
                          as_task("thanks", talk.refusal)),
        "another_joke": ((*more, "Another joke", "Tell me another joke.", "Haha, another one!", "lol more", "That was good, another one."),
                         another("joke")),
        "another_riddle": ((*more, "Another riddle", "Too easy, another one.", "Give me a harder one."), another("riddle")),
        "another_fact": ((*more, "Another fact", "Tell me one more fact.", "I knew that, another one."), another("fact")),
        "more": (("Tell me more.", "More", "Tell me more about it.", "What else?", "Go on.", "And then?", "Continue", "Is that all?",
        "Please go on.",
                  "I want to know more.", "Say more.", "Can you say more about it?", "More details please", "What more do you know?",
                  "keep going"),
                 no_more),
        "repeat": (("Say that again.", "Repeat that.", "Can you repeat that?", "Once more, please.", "Again please", "Come again?",
        "What did you say?",
                    "Please repeat.", "I missed that.", "Repeat your answer.", "Say it once more.", "Could you say that again?",
                    "pls repeat"),
                   again),
        "my_name": (("What is my name?", "Do you know my name?", "Who am I?", "What am I called?", "Do you remember my name?",
        "Say my name.",
                     "Tell me my name.", "What did I say my name was?", "You know my name, right?", "Can you tell me who I am?"), my_name),
        "my_home": (("Where do I live?", "Do you remember where I live?", "Which place did I name?", "Where is my home?",
        "Do you know where I live?",
                     "What did I say about my home?"), my_home),
        "my_pet": (("Which animal do I have?", "What animal do I have?", "What pet do I have?", "Do you remember my animal?",
        "What did I tell you about my pet?",
                    "Do I have an animal?"), my_pet),
        "last_question": (("What did I just ask?", "What did I say?", "What was my last question?", "Repeat my question.",
        "What did I write?",
                           "What did I ask you?", "Do you remember what I just said?", "Say what I wrote."), last_question),
        "first_question": (("What was my first question?", "How did I begin?", "What did I write first?",
        "What was the first thing that I said?",
                            "How did this chat begin?", "What did I say at the beginning?"), first_question),
        "capital": (and_of, either("out_capital", t.COUNTRIES, "I do not know the capital of {x} either.", ("capital of {x}",))),
        "people_in": (and_x, either("out_people_in", t.COUNTRIES, "I do not know how many people live in {x} either.",
        ("people live in {x}",))),
        "weather": ((*and_x, "And in {x}?", "And the weather in {x}?"),
                    either("out_weather", t.CITIES, "I cannot see the weather in {x} either.", ("the weather in {x}",))),
        "person": (and_x, either("out_person", t.FAMOUS, "I have not learned about {x} either.", ("{x}", "either"))),
        "topic": (and_x, either("out_topic", t.TOPICS, "I have not learned about {x} either.", ("{x}", "either"))),
        "other_language": (("And in {x}?", "And {x}?", "What about {x}?", "Then in {x}.", "How about {x}?", "And to {x}?", "In {x}?"),
                           either("out_translate", t.LANGUAGES, "I do not speak {x} either. I only know English.", ("{x}",
                           "only know English"))),
        "picture": (("Then draw {x}.", "And {x}?", "What about {x}?", "How about {x}?", "Can you draw {x} then?", "And a picture of {x}?"),
                    either("out_picture", tuple(word for word in t.PICTURES if " my " not in f" {word}"),
                           "I cannot draw {x} either, because I can only write text.", ("{x}", "only write text"))),
        "opposite": (and_of, same_again("opposite")),
        "sound": ((*and_x, "What does {x} say?"), same_again("sound", "a_x")),
        "young": ((*and_of, "And the young of {x}?", "And the baby of {x}?")[2:], same_again("young", "a_x")),
        "colour": (and_x, same_again("colour_of")),
        "plural": (and_of, same_again("plural")),
        "spell": ((*and_x, "And spell {x}."), same_again("spell")),
        "parity": (and_x, same_again("parity")),
        "rhyme": ((*and_x, "And with {x}?"), same_again("rhyme")),
        "home": (and_x, same_again("home", "a_x")),
        "eats": (and_x, same_again("eats", "a_x")),
        "kind": (and_x, same_again("kind_of", "a_x")),
        "after_day": (("And then?", "And after that?", "What comes next?", "And the next one?", "And the day after?", "What is next?",
        "Then?"),
                      next_in_line("day_after", "day")),
        "after_month": (("And then?", "And after that?", "What comes next?", "And the next one?", "And the month after?", "What is next?",
        "Then?"),
                        next_in_line("month_after", "month")),
        "aha": (("I did not know that.", "Cool idea!", "What a clever trick.", "Good to know.", "Now I understand.", "That is interesting.",
                     "Aha", "Oh, I see.", "That is clever.", "Makes sense.", "Got it."),
                    lambda rng, wording: ([talk.one(rng, *(name for name in talk.tasks if name.startswith("demo_")))],
                                          Piece(_asked(rng, wording), rng.choice(("I am glad that you like the idea.",
                                                                                  "I am glad that it interests you.")),
                                                ("I am glad that",)))),
    }  # fmt: skip


def follow(rng: random.Random, make: Follow, wording: str) -> list[Piece]:
    before, last = make(rng, wording)
    return [*before, last]


def chain(rng: random.Random, talk: Talk, lasts: tuple[str, ...], turns: int) -> list[Piece]:
    """Turns about anything, and a last one of the named tasks."""
    opening = [talk.one(rng, "greet", "greet", "greet_how", "how_are", "who")] if rng.random() < 0.5 else [talk.one(rng)]
    return [*opening, *(talk.one(rng) for _ in range(turns - 2)), talk.one(rng, *lasts)]


def chains(talk: Talk, groups: Mapping[str, tuple[str, ...]]) -> dict[str, Callable[[random.Random], list[Piece]]]:
    """By name, chats of two to six turns that change the subject; `groups` says which tasks end them."""
    return {
        f"chain_{group}/{turns - 2}": partial(chain, talk=talk, lasts=lasts, turns=turns)
        for group, lasts in groups.items()
        for turns in range(2, 7)
    }
