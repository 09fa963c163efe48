"""Small talk, and friendly honest answers to everything that lies outside the topics of the model."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

from . import chat_tables as t
from .base import Example, Pattern
from .lexicon import ANIMALS, BOYS, COLOURS, FOODS, GIRLS, JOBS, OBJECTS, SURNAMES, TOWNS, a, plural
from .story_tables import HERO_TRAITS

# A piece is one question with its answer and the facts that the answer repeats.
Piece = tuple[str, str, tuple[str, ...]]

_SELF = (
    "I am OmniDemo, a very small model that was trained on generated text.",
    "I am OmniDemo, a very small language model, and I was trained on generated text.",
    "My name is OmniDemo, and I am only a very small model that was trained on generated text.",
    "I am OmniDemo, a tiny model that learned from generated text.",
)
_SKILLS = "short stories, word problems, small Python functions, everyday how-to and one-sentence summaries"


def _ask(rng: random.Random) -> str:
    """One thing to ask the model for, as a noun phrase."""
    roll = rng.random()
    if roll < 0.45:
        return f"a short story about {a(rng.choice(HERO_TRAITS) + ' ' + rng.choice(ANIMALS))}"
    if roll < 0.6:
        return f"help with a word problem about {plural(rng.choice(FOODS))}"
    if roll < 0.75:
        return f"a small Python function that {rng.choice(t.PYTHON_JOBS)}"
    if roll < 0.92:
        return f"the steps to {rng.choice(t.HOWTOS)}"
    return "a one-sentence summary of a short text"


def _offer(rng: random.Random) -> str:
    ask = _ask(rng)
    return rng.choice(
        (
            f"You can ask me for {ask}.",
            f"Try to ask me for {ask}.",
            f"I can give you {ask}.",
            f"Ask me for {ask}, for example.",
            f"I can help with {_SKILLS}.",
            f"How about {ask}?",
        )
    )


def _decline(rng: random.Random, first: str) -> str:
    return f"{first} {rng.choice(_SELF)} {_offer(rng)}"


def _casual(rng: random.Random, prompt: str) -> str:
    """A third of the prompts are typed without care."""
    roll = rng.random()
    if roll < 0.65:
        return prompt
    low = prompt[0].lower() + prompt[1:] if prompt[:2] not in ("I ", "I'") else prompt
    if roll < 0.75:
        return low
    if roll < 0.85:
        return prompt.rstrip("?.!")
    return low.rstrip("?.!")


# Small talk: task -> (prompts, answers); "{offer}" is a suggestion that differs every time.
_SMALL_TALK: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "greet": (
        ("Hi", "Hello", "Hello!", "Hey", "Hi there", "Good morning", "Good evening", "Good afternoon!", "Hello OmniDemo",
        "Hey, anybody there?"),
        (
            "Hello! I am OmniDemo, a very small model. {offer}",
            "Hello! Nice to meet you. I am OmniDemo. {offer}",
            "Hello, and welcome! My name is OmniDemo. {offer}",
        ),
    ),
    "thanks": (
        ("Thanks", "Thank you!", "Thank you very much.", "Thanks a lot", "Great, thanks!", "Thank you for your help.", "Many thanks"),
        (
            "You are welcome! {offer}",
            "You are welcome! I am glad that I could help. {offer}",
            "You are very welcome! If you like, we can go on. {offer}",
        ),
    ),
    "who": (
        (
            "Who are you?", "What are you?", "What is your name?", "Are you a robot?", "Are you ChatGPT?", "Are you a human?",
            "Who am I talking to?", "Tell me about yourself.", "Introduce yourself.", "What is OmniDemo?", "Are you an AI?",
        ),
        (
            "I am OmniDemo, a very small language model that was trained on generated text. I can help with " + _SKILLS + ".",
            "My name is OmniDemo. I am a very small language model, and I was trained on generated text. {offer}",
        ),
    ),
    "can": (
        (
            "What can you do?", "What can I ask you?", "Help", "How can you help me?", "What are you good at?", "What do you know?",
            "Show me what you can do.", "What should I ask you?", "What are your skills?", "Can you help me?", "Give me an example.",
        ),
        (
            "I can help with " + _SKILLS + ". {offer}",
            "I am a very small model, but I can do a few things: " + _SKILLS + ". {offer}",
        ),
    ),
    "how_are": (
        ("How are you?", "How are you doing?", "How is it going?", "How are you today?", "What's up?", "Are you well?", "How do you feel?"),
        (
            "I am fine, thank you! I am OmniDemo, a small model, and I am ready to help. {offer}",
            "Thank you for asking, I am fine and ready to help. {offer}",
        ),
    ),
    "bye": (
        ("Bye", "Goodbye", "See you later!", "Good night", "I have to go.", "Bye bye", "That is all for today.", "See you tomorrow."),
        (
            "Goodbye! It was nice to talk to you. Next time, {ask_low} would be fun.",
            "Goodbye, and have a nice day! Come back when you would like {ask_low}.",
            "See you soon! Come back when you need {ask_low}.",
        ),
    ),
    "praise": (
        ("Good job!", "You are great.", "Well done!", "I like you.", "You are smart.", "That was nice.", "Great answer!",
        "You are funny.", "Cool"),
        (
            "Thank you, that is kind of you! I am only a very small model, but I do my best. {offer}",
            "Thank you very much! I am glad that you like it. {offer}",
        ),
    ),
    "blame": (
        ("That is wrong.", "You are stupid.", "This is bad.", "I do not like it.", "That makes no sense.", "You made a mistake.",
        "Bad answer."),
        (
            "I am sorry about that. I am OmniDemo, a very small model, and I make mistakes. {offer}",
            "I am sorry. A very small model like me is often wrong. {offer}",
        ),
    ),
    "ok": (
        ("Ok", "Okay", "Yes", "No", "Sure", "I see.", "Hm", "Really?", "Maybe", "Interesting", "Go on.", "Alright then."),
        ("All right! {offer}", "All right! What shall we do next? {offer}"),
    ),
    "test": (
        ("test", "Test", "testing", "Testing 1 2 3", "This is a test.", "Just a test", "test test", "Does this work?", "Are you there?",
        "ping"),
        (
            "The test worked, and I am here. I am OmniDemo, a very small model. {offer}",
            "Yes, I am here, and it works. {offer}",
        ),
    ),
    "made": (
        (
            "Who made you?", "How were you trained?", "How big are you?", "How do you work?", "Where do you come from?",
            "What were you trained on?", "How many parameters do you have?", "Are you smart?", "Are you like ChatGPT?",
            "Do you run on my computer?",
        ),
        (
            "I am OmniDemo, the small model of this demo. I have only a few million parameters, and I learned from generated text. {offer}",
            "I am OmniDemo. I was trained from nothing on generated text, and I am very small, so I know only a few things. {offer}",
        ),
    ),
    "bored": (
        ("I am bored.", "Entertain me.", "What shall we do?", "I do not know what to ask.", "Any ideas?", "I am tired.", "I am sad.",
        "Talk to me."),
        ("I have an idea for you. {offer}", "Let us do something nice together. {offer}"),
    ),
}  # fmt: skip


def _small(rng: random.Random, prompt: str, task: str) -> Piece:
    answer = rng.choice(_SMALL_TALK[task][1])
    return _casual(rng, prompt), answer.replace("{offer}", _offer(rng)).replace("{ask_low}", _ask(rng)), ()


def _topic(rng: random.Random) -> str:
    roll = rng.random()
    if roll < 0.62:
        return rng.choice(t.TOPICS)
    if roll < 0.7:
        return rng.choice(t.COUNTRIES)
    if roll < 0.76:
        return rng.choice(t.CITIES)
    if roll < 0.84:
        return a(rng.choice(ANIMALS))
    if roll < 0.92:
        return a(rng.choice(OBJECTS + JOBS + FOODS))
    return _nonsense(rng)


def _nonsense(rng: random.Random) -> str:
    syllables = [rng.choice(t.CONSONANTS) + rng.choice(t.VOWELS) for _ in range(rng.randint(2, 3))]
    return "".join(syllables) + rng.choice(("", "n", "x", "rk", "l", "m", "zz"))


def _mash(rng: random.Random) -> str:
    return " ".join(
        rng.choice(t.MASH) + rng.choice(("", "", rng.choice(t.CONSONANTS), str(rng.randint(1, 99)))) for _ in range(rng.randint(1, 3))
    )


def _person(rng: random.Random) -> str:
    return rng.choice(t.FAMOUS) if rng.random() < 0.5 else f"{rng.choice(GIRLS + BOYS)} {rng.choice(SURNAMES)}"


def _big(rng: random.Random) -> str:
    return str(rng.randint(1000, 10 ** rng.randint(4, 7)))


def _from(name: str) -> Callable[[random.Random], str]:
    words = getattr(t, name)
    return lambda rng: rng.choice(words)


def _device(rng: random.Random) -> str:
    return a(rng.choice(t.DEVICES))


def _city(rng: random.Random) -> str:
    return rng.choice(t.CITIES) if rng.random() < 0.5 else rng.choice(TOWNS)


def _lang(rng: random.Random) -> str:
    return rng.choice(t.LANGUAGES)


# Outside the topics: task -> (draw "{x}", draw "{y}", prompts, first sentences of the answer). "{x}" is the echoed fact.
_Draw = Callable[[random.Random], str]
_OUTSIDE: dict[str, tuple[_Draw, _Draw, tuple[str, ...], tuple[str, ...]]] = {
    "topic": (
        _topic,
        _topic,
        (
            "What is {x}?", "Tell me about {x}.", "Explain {x}.", "What do you know about {x}?", "Can you explain {x}?",
            "Give me facts about {x}.",
            "What does {x} mean?", "Why is {x} important?", "I want to learn about {x}.", "Describe {x}.", "Teach me something about {x}.",
            "What is the history of {x}?", "Explain {x} to a child.", "Is {x} dangerous?", "Give me the definition of {x}.",
            "What about {x}?",
            "Do you know {x}?", "How big is {x}?", "What is so special about {x}?", "What is the difference between {x} and {y}?",
            "Who invented {x}?", "Where can I find {x}?", "How much is {x}?", "Tell me more about {x}.",
        ),
        (
            "I am sorry, but I do not know enough about {x}.",
            "I cannot tell you anything reliable about {x}.",
            "I am sorry, but I was not trained on facts about {x}.",
            "I have not learned about {x}, so I would only guess.",
        ),
    ),
    "person": (
        _person,
        _person,
        (
            "Who was {x}?", "Who is {x}?", "Tell me about {x}.", "When was {x} born?", "What did {x} do?", "Do you know {x}?",
            "Why is {x} famous?", "How old is {x}?", "Where does {x} live?", "Write a biography of {x}.", "What do you think of {x}?",
        ),
        (
            "I am sorry, but I do not know who {x} is.",
            "I cannot tell you anything reliable about {x}.",
            "I have not learned about {x}, so I would only guess.",
        ),
    ),
    "device": (
        _device,
        _device,
        (
            "How does {x} work?", "Explain how {x} works.", "How is {x} made?", "Can you tell me how {x} works?", "Who invented {x}?",
            "What is inside {x}?", "How do I repair {x}?", "How do I build {x}?",
        ),
        ("I am sorry, but I cannot explain {x}.", "I do not know enough about {x} to explain it.", "I have not learned how {x} works."),
    ),
    "why": (
        _from("WHYS"),
        _topic,
        (
            "Explain why {x}.", "Can you tell me why {x}?", "Do you know why {x}?", "Tell me why {x}.", "I wonder why {x}.",
            "What is the reason why {x}?",
        ),
        ("I am sorry, but I do not know why {x}.", "I cannot explain why {x}.", "I have not learned why {x}."),
    ),
    "why_do": (
        lambda rng: f"{plural(rng.choice(ANIMALS))} {rng.choice(('sleep', 'hide', 'run', 'sing', 'eat', 'fight', 'dig', 'dream'))}",
        _topic,
        ("Why do {x}?", "Do you know why {x}?", "Explain why {x}.", "When do {x}?", "Where do {x}?", "How do {x}?"),
        ("I am sorry, but I do not know much about how {x}.", "I have not learned when or why {x}.", "I cannot say when or why {x}."),
    ),
    "history": (
        _from("EVENTS"),
        _topic,
        (
            "When was {x}?", "Tell me about {x}.", "What happened during {x}?", "What caused {x}?", "Summarise the history of {x}.",
            "Who was involved in {x}?", "Why did {x} happen?",
        ),
        ("I am sorry, but I have not learned about {x}.", "History is not one of my topics, so I cannot tell you about {x}."),
    ),
    "geography": (
        _from("COUNTRIES"),
        _topic,
        (
            "What is the capital of {x}?", "How many people live in {x}?", "Where is {x}?", "Who is the president of {x}?",
            "What language do they speak in {x}?", "How big is {x}?", "What is the flag of {x}?", "Should I travel to {x}?",
        ),
        ("I am sorry, but I do not know the facts about {x}.", "I have not learned any facts about {x}.",
        "Geography is not one of my topics, so I cannot tell you about {x}."),
    ),
    "weather": (
        _city,
        _from("WEATHER_ASKS"),
        (
            "What is {y} like in {x}?", "How is {y} in {x} today?", "Will it rain in {x} tomorrow?", "Is it cold in {x}?",
            "Is it sunny in {x} today?", "Do I need an umbrella in {x}?", "Tell me about {y} in {x}.", "Will it snow in {x} this week?",
        ),
        ("I cannot see the weather in {x}, because I have no internet.", "I am sorry, but I do not know the weather in {x}."),
    ),
    "news": (
        _city,
        _topic,
        (
            "What is the news from {x} today?", "What happened in {x} today?", "What are the latest headlines from {x}?",
            "What time is it in {x}?", "Who won the match in {x}?", "What is going on in {x}?", "What is the date in {x} today?",
        ),
        ("I cannot see what happens in {x}, because I have no internet.", "I am sorry, but I know nothing about today in {x}."),
    ),
    "today": (
        _from("SITES"),
        _topic,
        (
            "Can you look up {x}?", "Search for {x}.", "Open {x} for me.", "Check {x}, please.", "Can you browse {x}?", "Find {x} online.",
            "Google {x}.", "Can you read {x}?", "Show me {x}.",
        ),
        ("I cannot look up {x}, because I have no internet.", "I am sorry, but I cannot check {x}, because I am offline."),
    ),
    "politics": (
        _from("POLITICS"),
        _topic,
        (
            "What do you think about {x}?", "Who should I vote for because of {x}?", "Is {x} good or bad?", "What is your opinion on {x}?",
            "Explain {x} to me.", "Do you support {x}?", "Why does everybody talk about {x}?",
        ),
        ("I have no opinion about {x}.", "Politics is not one of my topics, so I cannot say anything about {x}."),
    ),
    "medical": (
        _from("MEDICAL"),
        _topic,
        (
            "What helps against {x}?", "What should I do about {x}?", "Which medicine helps with {x}?", "How do doctors treat {x}?",
            "Is {x} serious?", "I need advice about {x}.",
        ),
        (
            "I cannot give medical advice about {x}. Please ask a doctor.",
            "I am sorry, but a question about {x} is one for a doctor, not for me.",
        ),
    ),
    "legal": (
        _from("LEGAL"),
        _topic,
        ("I need legal advice about {x}.", "Can I go to court because of {x}?", "What are my rights in the matter of {x}?",
        "Help me with {x}, please.",
         "What does the law say about {x}?"),
        ("I cannot give legal advice about {x}. Please ask a lawyer.",
        "I am sorry, but a question about {x} is one for a lawyer, not for me."),
    ),
    "finance": (
        _from("FINANCE"),
        _topic,
        ("Should I put money into {x}?", "What do you think about {x} as an investment?", "Give me financial advice about {x}.",
         "How do I get rich with {x}?", "Is it a good time for {x}?", "What should I do with {x}?"),
        ("I cannot give financial advice about {x}. Please ask an expert.",
        "I am sorry, but a question about {x} is one for an expert, not for me."),
    ),
    "picture": (
        _from("PICTURES"),
        _topic,
        ("Draw {x}.", "Make a picture of {x}.", "Can you paint {x}?", "Show me a photo of {x}.", "Generate an image of {x}.",
        "Create a video of {x}.",
         "Draw me {x}, please."),
        ("I cannot draw {x}, because I can only write text.", "I am sorry, but I cannot make a picture of {x}. I can only write text."),
    ),
    "essay": (
        _from("ESSAYS"),
        lambda rng: str(rng.randint(3, 40) * 100),
        ("Write an essay about {x}.", "Write {y} words about {x}.", "Write a long article about {x}.",
        "Write a report on {x} with {y} words.",
         "Do my homework about {x}.", "Write a speech about {x}.", "Write a poem about {x}.", "Write a song about {x}."),
        ("I am sorry, but I cannot write about {x}. I only write short texts.", "A text about {x} is too much for a model of my size."),
    ),
    "translate": (
        _lang,
        lambda rng: rng.choice((rng.choice(ANIMALS), rng.choice(OBJECTS), rng.choice(COLOURS), "good morning", "I love you", "thank you")),
        ("Translate \"{y}\" into {x}.", "How do you say \"{y}\" in {x}?", "What is \"{y}\" in {x}?", "Do you speak {x}?",
        "Can you teach me {x}?",
         "Answer me in {x}.", "Write a letter in {x}."),
        ("I am sorry, but I do not speak {x}. I only know English.", "I cannot help with {x}, because I only know English."),
    ),
    "other_code": (
        _from("CODE_LANGUAGES"),
        _from("PROGRAMS"),
        ("Write a {y} in {x}.", "Can you code a {y} in {x}?", "Show me some {x} code for a {y}.", "Do you know {x}?",
        "Help me with my {x} code.",
         "How do I write a {y} in {x}?", "Is {x} better than Python?"),
        ("I am sorry, but I do not know {x}. I only write small Python functions.",
        "I cannot write {x}, because I only know a little Python."),
    ),
    "big_sum": (
        lambda rng: f"{_big(rng)}{rng.choice(('*', ' * ', ' x ', ' times ', ' / ', ' divided by '))}{_big(rng)}",
        _topic,
        ("What is {x}?", "Calculate {x}.", "{x}", "How much is {x}?", "Compute {x} for me.", "Can you work out {x}?", "{x} = ?"),
        ("I cannot work out {x}, because the numbers are too big for me.",
        "I am sorry, but {x} is too hard for me. I only do small numbers."),
    ),
    "action": (
        _from("ACTIONS"),
        _topic,
        ("Can you {x}?", "Please {x}.", "I want you to {x}.", "Could you {x} for me?", "Help me to {x}.", "Are you able to {x}?"),
        ("I cannot {x}, because I can only write text.", "I am sorry, but I am not able to {x}. I can only write text."),
    ),
    "best": (
        _from("MEDIA"),
        _city,
        ("What is the best {x}?", "Which {x} should I choose?", "Recommend {a_x}.", "What is your favourite {x}?", "Tell me a good {x}.",
         "Which {x} do you like most?", "What is the best {x} in {y}?", "How much does a good {x} cost?"),
        ("I cannot recommend {a_x}, because I do not know any.", "I am sorry, but I have no favourite {x}."),
    ),
    "life": (
        lambda rng: rng.choice(("life", "love", "happiness", "time", "death", "truth", "beauty", "freedom", "justice", "the future",
        "the soul",
                                "friendship", "art", "evil", "hope", "fate", "dreams", "money", "power", "the past", "reality", "luck")),
        _topic,
        ("What is the meaning of {x}?", "What is {x}?", "Do you believe in {x}?", "What do you think about {x}?", "Can you explain {x}?",
         "Is {x} real?"),
        ("That is a big question, and I have no good answer about {x}.", "I am too small a model to explain {x}."),
    ),
    "fun": (
        _from("FUN"),
        _topic,
        ("Tell me {x}.", "Give me {x}.", "Do you know {x}?", "Make up {x} about {y}.", "I want to hear {x}.", "Can you write {x} for me?"),
        ("I am sorry, but I cannot give you {x}.", "I have not learned to make {x}."),
    ),
    "word": (
        _nonsense,
        _nonsense,
        ("What is {x}?", "What does {x} mean?", "{x}", "{x} {y}", "Do you like {x}?", "Explain {x}.", "Where is the {x}?"),
        ("I do not know the word {x}.", "I am sorry, but I do not understand the word {x}."),
    ),
}  # fmt: skip


def _lead(rng: random.Random, asked: str) -> str:
    """Now and then a question comes with a few words in front of it."""
    if rng.random() < 0.75:
        return asked
    lead = rng.choice(t.LEADS)
    if lead[-2] in ",:t" and not asked.startswith("I "):
        asked = asked[0].lower() + asked[1:]
    return lead + asked


def _out(rng: random.Random, prompt: str, task: str) -> Piece:
    draw_x, draw_y, _, firsts = _OUTSIDE[task]
    x, y = draw_x(rng), draw_y(rng)
    first = rng.choice(firsts)
    # What the user calls "my" is "your" in the answer; then nothing is repeated to the letter.
    said = f" {x} ".replace(" my ", " your ").replace(" me ", " you ").strip()
    first = first.replace("{x}", said).replace("{a_x}", a(x))
    first = first[0].upper() + first[1:]
    # The prompt of a made-up word or of a sum starts with it; a fact stays as it was typed.
    asked = prompt.replace("{x}", x).replace("{y}", y).replace("{a_x}", a(x))
    return (asked if prompt[0] == "{" else _casual(rng, _lead(rng, asked))), _decline(rng, first), ((x,) if said == x else ())


def _private(rng: random.Random, prompt: str) -> Piece:
    firsts = ["I am only a program and know nothing about that.", "I have no good answer to that, because I am only a program."]
    if not {"me", "my", "me?", "I"} & set(prompt.split()):
        firsts.append("I am a program, so I have no private life.")
    return _casual(rng, prompt), _decline(rng, rng.choice(firsts)), ()


def _mashed(rng: random.Random, shape: str) -> Piece:
    first = rng.choice(("I am sorry, but I do not understand that.", "That looks like a few random keys."))
    return shape.replace("{x}", _mash(rng)), _decline(rng, first), ()


def _one(rng: random.Random, *, pattern: str, piece: Callable[[random.Random], Piece]) -> Example:
    asked, answer, facts = piece(rng)
    return Example("chat", pattern, ((asked, answer),), facts=facts)


def _chain(rng: random.Random, *, pattern: str, tasks: tuple[str, ...]) -> Example:
    """Several questions after each other; the facts are those of the last one."""
    pieces = [_any_piece(rng, task) for task in tasks]
    return Example("chat", pattern, tuple((asked, answer) for asked, answer, _ in pieces), facts=pieces[-1][2])


def _any_piece(rng: random.Random, task: str) -> Piece:
    if task == "out":
        task = rng.choice(tuple(_OUTSIDE))
    if task == "private":
        return _private(rng, rng.choice(t.PRIVATE))
    if task in _OUTSIDE:
        return _out(rng, rng.choice(_OUTSIDE[task][2]), task)
    return _small(rng, rng.choice(_SMALL_TALK[task][0]), task)


_CHAINS = (
    "greet who", "greet who thanks", "greet how_are", "greet how_are can", "greet can", "greet can thanks", "who can", "who can bye",
    "who made",
    "who made thanks", "greet out", "greet out thanks", "greet out can", "out can", "out who", "out out", "out out can", "out thanks",
    "out bye",
    "out blame", "out blame can", "test greet", "test can", "greet bye", "how_are who", "how_are private", "private who", "private out",
    "greet private thanks", "can praise", "can praise bye", "greet praise", "topic topic", "topic person", "person topic thanks",
    "greet topic bye",
    "geography weather", "weather news", "ok can", "bored can", "bored can thanks", "made out", "made praise", "thanks bye", "greet ok can",
)  # fmt: skip


def _patterns() -> dict[str, Pattern]:
    table: dict[str, Pattern] = {}

    def add(task: str, i: int, piece: Callable[[random.Random], Piece]) -> None:
        name = f"chat/{task}/{i}"
        table[name] = partial(_one, pattern=name, piece=piece)

    for task, (prompts, _) in _SMALL_TALK.items():
        for i, prompt in enumerate(prompts):
            add(task, i, partial(_small, prompt=prompt, task=task))
    for task, (_, _, prompts, _) in _OUTSIDE.items():
        for i, prompt in enumerate(prompts):
            add(f"out_{task}", i, partial(_out, prompt=prompt, task=task))
    for i, prompt in enumerate(t.PRIVATE):
        add("private", i, partial(_private, prompt=prompt))
    for i, shape in enumerate(("{x}", "{x}?", "{x}!", "what is {x}", "{x} {x}")):
        add("mash", i, partial(_mashed, shape=shape))
    for i, chain in enumerate(_CHAINS):
        name = f"chat/chain/{i}"
        table[name] = partial(_chain, pattern=name, tasks=tuple(chain.split()))
    return table


PATTERNS: dict[str, Pattern] = _patterns()
