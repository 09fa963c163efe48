"""Friendly, honest answers to what the model cannot know or do; each echoes what was asked about, and each fits its wordings."""

from __future__ import annotations

import random
import re

from . import chat_tables as t
from .chat_style import Draw, Slots, Task, choose
from .lexicon import ANIMALS, BOYS, COLOURS, FOODS, GIRLS, OBJECTS, SURNAMES, TOWNS, a, plural


def said(text: str) -> str:
    """What the visitor calls "my" is "your" in the answer."""
    return f" {text} ".replace(" my ", " your ").replace(" me ", " you ").strip()


def core(text: str) -> str:
    """The words without an article or owner in front, and without what an answer turns round."""
    return max(re.split(r"\b(?:my|me)\b", re.sub(r"^(?:my|the|an?) ", "", text)), key=len).strip()


def one(words: tuple[str, ...]) -> Draw:
    def draw(rng: random.Random) -> Slots:
        x = rng.choice(words)
        return {"x": x, "a_x": a(x), "said": said(x), "core": core(x)}

    return draw


def _place(rng: random.Random) -> Slots:
    return {"x": rng.choice(t.COUNTRIES) if rng.random() < 0.75 else rng.choice(t.CITIES + t.REGIONS)}


def _city(rng: random.Random) -> Slots:
    return {"x": rng.choice(t.CITIES) if rng.random() < 0.65 else rng.choice(TOWNS)}


def _weather(rng: random.Random) -> Slots:
    return {**_city(rng), "y": rng.choice(t.WEATHER_ASKS), "sky": rng.choice(t.SKIES), "when": rng.choice(t.WHENS)}


def _person(rng: random.Random) -> Slots:
    return {"x": rng.choice(t.FAMOUS) if rng.random() < 0.6 else f"{rng.choice(GIRLS + BOYS)} {rng.choice(SURNAMES)}"}


def _office(rng: random.Random) -> Slots:
    return {"x": f"{rng.choice(t.OFFICES)} of {rng.choice(t.COUNTRIES)}"}


def _animals(rng: random.Random) -> Slots:
    return {"x": plural(rng.choice(ANIMALS)), "do": rng.choice(t.ANIMAL_DEEDS)}


def _topics(rng: random.Random) -> Slots:
    x, y = rng.sample(t.TOPICS, 2)
    return {"x": x, "y": y}


def _essay(rng: random.Random) -> Slots:
    x = rng.choice(t.ESSAYS if rng.random() < 0.5 else t.TOPICS)
    return {"x": x, "n": str(rng.choice((2, 3, 5, 10, 20, 50)) * 100), "kind": rng.choice(t.LONG_TEXTS)}


def _verse(rng: random.Random) -> Slots:
    words = (rng.choice(ANIMALS), rng.choice(OBJECTS), rng.choice(FOODS))
    return {"x": rng.choice((*map(a, words), rng.choice(t.VERSE_THEMES), rng.choice(t.VERSE_THEMES))), "kind": rng.choice(t.VERSES)}


def _translation(rng: random.Random) -> Slots:
    word = rng.choice((rng.choice(ANIMALS), rng.choice(OBJECTS), rng.choice(COLOURS), rng.choice(FOODS), rng.choice(t.PHRASES)))
    return {"x": rng.choice(t.LANGUAGES), "y": word}


def _program(rng: random.Random) -> Slots:
    program = rng.choice(t.PROGRAMS)
    return {"x": rng.choice(t.CODE_LANGUAGES), "y": program, "a_y": a(program)}


def _big_sum(rng: random.Random) -> Slots:
    sign, n = rng.choice(("*", " * ", " x ", " times ", " / ", " divided by ")), rng.randint(4, 7)
    return {"x": f"{rng.randint(1000, 10**n)}{sign}{rng.randint(1000, 10**n)}"}


def _hard_maths(rng: random.Random) -> Slots:
    return {"x": rng.choice(t.HARD_MATHS).replace("#", str(rng.randint(3, 999)))}


def _best(rng: random.Random) -> Slots:
    x = rng.choice(t.MEDIA)
    return {"x": x, "a_x": a(x), "y": rng.choice(t.CITIES)}


def _title(rng: random.Random) -> Slots:
    kind = rng.choice(("film", "book", "song", "series", "game"))
    return {"x": rng.choice(t.TITLES), "kind": kind}


def _price(rng: random.Random) -> Slots:
    return {"x": a(rng.choice(t.MEDIA + t.DEVICES + t.GOODS))}


def nonsense(rng: random.Random) -> str:
    syllables = [rng.choice(t.CONSONANTS) + rng.choice(t.VOWELS) for _ in range(rng.randint(2, 3))]
    return "".join(syllables) + rng.choice(("", "n", "x", "rk", "l", "m", "zz"))


def _word(rng: random.Random) -> Slots:
    return {"x": nonsense(rng), "y": nonsense(rng)}


def _mash(rng: random.Random) -> Slots:
    keys = (rng.choice(t.MASH) + rng.choice(("", "", rng.choice(t.CONSONANTS), str(rng.randint(1, 99)))) for _ in range(rng.randint(1, 3)))
    return {"x": " ".join(keys)}


OUTSIDE: dict[str, Task] = {
    "topic": Task(
        ("What is {x}?", "Tell me about {x}.", "Explain {x}.", "What do you know about {x}?", "Can you explain {x}?",
         "Give me facts about {x}.",
         "What does {x} mean?", "Why is {x} important?", "I want to learn about {x}.", "Describe {x}.", "Teach me something about {x}.",
         "What is the history of {x}?", "Explain {x} to a child.", "Is {x} dangerous?", "Give me the definition of {x}.", "What about {x}?",
         "Do you know {x}?", "How big is {x}?", "What is so special about {x}?", "Who invented {x}?", "Where can I find {x}?",
         "Tell me more about {x}.", "How does {x} work?", "Explain {x} in simple words.", "{x}", "Define {x}.",
         "What can you tell me about {x}?",
         "I have a question about {x}.", "Who discovered {x}?", "Summarise {x} for me.", "Have you heard of {x}?",
         "Give me a lesson on {x}.",
         "What exactly is {x}?", "Why does {x} matter?", "I do not understand {x}.", "Help me to understand {x}.", "{x} explained please",
         "Explain to me what {x} is.", "What are the main ideas of {x}?", "What causes {x}?", "Let us talk about {x}.",
         "Information about {x}"),
        ("I am sorry, but I do not know enough about {x}.", "I have not learned about {x}, so I would only guess.",
         "I was not trained on facts about {x}."),
        ("{x}",), one(t.TOPICS), offer=0.5, lead=True),
    "difference": Task(
        ("What is the difference between {x} and {y}?", "Compare {x} and {y}.", "Is {x} better than {y}?", "How are {x} and {y} related?",
         "{x} versus {y}?", "What do {x} and {y} have in common?", "What is more important, {x} or {y}?", "{x} vs {y}"),
        ("I am sorry, but I do not know enough about {x} and {y} to compare them.",
         "I cannot compare {x} and {y}, because I have learned about neither."),
        ("{x}", "{y}"), _topics, offer=0.45, lead=True),
    "person": Task(
        ("Who was {x}?", "Who is {x}?", "Tell me about {x}.", "What did {x} do?", "Do you know {x}?", "Why is {x} famous?",
         "Write a biography of {x}.", "What do you think of {x}?", "Who exactly is {x}?", "Tell me the life of {x}.", "Is {x} a singer?",
         "What is {x} known for?", "Have you heard of {x}?", "{x}", "Tell me everything about {x}.", "Is {x} a good person?",
         "What do you know about {x}?", "Was {x} a king?", "What did {x} invent?", "Which books did {x} write?", "do u know {x}"),
        ("I am sorry, but I do not know anything about {x}.", "I have not learned about {x}, so I would only guess.",
         "Famous people are not one of my topics, so I cannot tell you about {x}."),
        ("{x}",), _person, offer=0.5, lead=True),
    "person_when": Task(
        ("When was {x} born?", "How old is {x}?", "Where was {x} born?", "When did {x} die?", "Where does {x} live?", "Is {x} still alive?",
         "How tall is {x}?", "Is {x} married?", "How rich is {x}?", "Who is the wife of {x}?", "How many children does {x} have?",
         "Who is the husband of {x}?", "When is the birthday of {x}?", "In which year was {x} born?", "Which country is {x} from?"),
        ("I am sorry, but I know no dates or facts about {x}.", "I do not know that about {x}, because I have not learned about people."),
        ("{x}",), _person, offer=0.5, lead=True),
    "office": Task(
        ("Who is the {x}?", "Who is now the {x}?", "Who was the first {x}?", "What is the name of the {x}?", "How old is the {x}?",
         "Who was the last {x}?",
         "Name the {x}.", "Do you know the {x}?", "Who will be the next {x}?", "Who is currently the {x}?", "Tell me the name of the {x}.",
         "Tell me about the {x}.", "What do you know about the {x}?"),
        ("I do not know who the {x} is.", "I am sorry, but I cannot tell you about the {x}."),
        ("{x}",), _office, offer=0.45, lead=True),
    "capital": Task(
        ("What is the capital of {x}?", "Capital of {x}", "What is the capital city of {x}?", "Which city is the capital of {x}?",
         "Tell me the capital of {x}.", "The capital of {x}?", "Do you know the capital of {x}?", "{x} capital?",
         "Name the capital of {x}.",
         "What's the capital of {x}?", "Whats the capital of {x}", "What is the capital of {x} called?", "And the capital of {x}?",
         "Can you tell me the capital of {x}?", "I need the capital of {x}.", "How big is the capital of {x}?", "What is {x}'s capital?"),
        ("I do not know the capital of {x}. I have not learned geography.", "I am sorry, but I have not learned the capital of {x}."),
        ("the capital of {x}",), choose(x=t.COUNTRIES), offer=0.5, lead=True),
    "people_in": Task(
        ("How many people live in {x}?", "What is the population of {x}?", "Population of {x}?", "How many inhabitants does {x} have?",
         "How big is the population of {x}?", "How many people are there in {x}?", "Tell me the population of {x}.",
         "Do you know how many people live in {x}?", "Number of people in {x}?", "Does {x} have many inhabitants?"),
        ("I do not know how many people live in {x}.", "I am sorry, but I have not learned how many people live in {x}."),
        ("how many people live in {x}",), _place, offer=0.5, lead=True),
    "where_is": Task(
        ("Where is {x}?", "Where is {x} on the map?", "In which country is {x}?", "How far is it to {x}?", "How do I get to {x}?",
         "Which continent is {x} on?", "What countries are near {x}?", "Can you show me where {x} is?", "Is {x} far away?",
         "Where can I find {x}?", "How far away is {x}?", "Is {x} in Europe?", "What is north of {x}?"),
        ("I do not know where {x} is, because I have never seen a map.", "I am sorry, but I cannot say where {x} is."),
        ("where {x} is",), _place, offer=0.5, lead=True),
    "geography": Task(
        ("What language do they speak in {x}?", "How big is {x}?", "What is the flag of {x}?", "Tell me about {x}.",
         "What is {x} known for?",
         "What do people eat in {x}?", "What is the currency of {x}?", "What is the history of {x}?", "Is {x} a rich country?",
         "What is the longest river in {x}?", "What is the highest mountain in {x}?", "Give me some facts about {x}.", "How old is {x}?",
         "What do you know about {x}?", "What is the biggest city in {x}?", "Tell me something about {x}.", "How large is {x}?", "{x}",
         "What is the national anthem of {x}?", "When was {x} founded?", "Is {x} bigger than Italy?", "What money do they use in {x}?"),
        ("I am sorry, but I do not know any facts about {x}.", "I have not learned any facts about {x}.",
         "Geography is not one of my topics, so I cannot tell you about {x}."),
        ("{x}",), _place, offer=0.5, lead=True),
    "travel": Task(
        ("Should I travel to {x}?", "What should I see in {x}?", "Plan a trip to {x}.", "Where should I stay in {x}?",
         "I want to visit {x}.",
         "What can I do in {x}?", "Is {x} worth a visit?", "Is {x} safe?", "When is the best time to visit {x}?",
         "Do I need a visa for {x}?",
         "How much does a trip to {x} cost?", "I am going to {x}, any tips?", "Give me travel tips for {x}.",
         "What is there to see in {x}?"),
        ("I have never been to {x}, so I cannot give you travel tips.", "I cannot help with a trip to {x}, but I hope that you enjoy it."),
        ("{x}", "cannot"), _place, offer=0.45, lead=True),
    "landmark": Task(
        ("How tall is {x}?", "How old is {x}?", "Where is {x}?", "Who built {x}?", "How high is {x}?", "When was {x} built?",
         "Tell me about {x}.",
         "How long is {x}?", "Why is {x} famous?", "What can you see at {x}?", "Have you seen {x}?", "How deep is {x}?", "What is {x}?",
         "Who discovered {x}?", "How far away is {x}?", "How big is {x}?"),
        ("I have not learned about {x}, so I do not know.", "I am sorry, but I do not know the facts about {x}."),
        ("{x}",), one(t.LANDMARKS), offer=0.5, lead=True),
    "record": Task(
        ("What is the {x}?", "Which is the {x}?", "Do you know the {x}?", "Name the {x}.", "Tell me the {x}.",
         "What is the name of the {x}?",
         "Can you tell me the {x}?", "Where is the {x}?", "How big is the {x}?", "The {x}?"),
        ("I do not know the {x}. I have not learned such records.", "I am sorry, but I have not learned about the {x}."),
        ("the {x}",), choose(x=t.RECORDS), offer=0.5, lead=True),
    "device": Task(
        ("How does {x} work?", "Explain how {x} works.", "How is {x} made?", "Can you tell me how {x} works?", "Who invented {x}?",
         "What is inside {x}?", "How do I repair {x}?", "How do I build {x}?", "When was {x} invented?", "How fast is {x}?",
         "What makes {x} work?", "Do you know how {x} works?", "Why does {x} work?", "Who made the first {core}?"),
        ("I have not learned how {x} works.", "I am sorry, but I cannot explain how {x} works."),
        ("how {x} works",), lambda rng: (lambda x: {"x": a(x), "core": x})(rng.choice(t.DEVICES)), offer=0.5, lead=True),
    "why": Task(
        ("Explain why {x}.", "Can you tell me why {x}?", "Do you know why {x}?", "Tell me why {x}.", "I wonder why {x}.",
         "What is the reason why {x}?", "How come {x}?", "Why is it that {x}?", "What is the cause when {x}?", "My son asks why {x}."),
        ("I am sorry, but I do not know why {x}.", "I cannot explain why {x}.", "I have not learned why {x}."),
        ("why {x}",), choose(x=t.WHYS), offer=0.5, lead=True, typos=False),
    "why_do": Task(
        ("Why do {x} {do}?", "Do you know why {x} {do}?", "Explain why {x} {do}.", "Can you tell me why {x} {do}?",
         "Why do some {x} {do}?"),
        ("I have not learned why {x} {do}.", "I am sorry, but I cannot say why {x} {do}."),
        ("why {x} {do}",), _animals, offer=0.45, lead=True),
    "history": Task(
        ("When was {x}?", "Tell me about {x}.", "What happened during {x}?", "What caused {x}?", "Summarise {x}.",
         "Who was involved in {x}?",
         "Why did {x} happen?", "When did {x} happen?", "When did {x} start?", "When did {x} end?", "In which year was {x}?",
         "Explain {x}.",
         "What was {x}?", "How long did {x} last?", "What do you know about {x}?", "Who won {x}?", "Date of {x}?", "What led to {x}?"),
        ("I am sorry, but I have not learned about {x}.", "History is not one of my topics, so I cannot tell you about {x}."),
        ("{x}",), one(t.EVENTS), offer=0.5, lead=True),
    "year": Task(
        ("What happened in {x}?", "What happened in the year {x}?", "Who was president in {x}?", "What was invented in {x}?",
         "Who won the World Cup in {x}?",
         "What was special about {x}?", "Tell me about the year {x}.", "Who ruled in {x}?", "What was life like in {x}?",
         "Name an event of {x}."),
        ("I do not know what happened in {x}. I have not learned history.", "I am sorry, but I cannot say what happened in {x}."),
        ("what happened in {x}",), lambda rng: {"x": str(rng.randint(1000, 2030))}, offer=0.45, lead=True),
    "weather": Task(
        ("What is {y} like in {x}?", "How is {y} in {x} today?", "Will it rain in {x} tomorrow?", "Is it cold in {x}?",
         "Is it sunny in {x} today?",
         "Do I need an umbrella in {x}?", "Tell me about {y} in {x}.", "Will it snow in {x} this week?", "Weather in {x}",
         "How warm is it in {x}?",
         "What's the weather in {x}?", "Weather {x}?", "Is it raining in {x}?", "How hot is it in {x} now?",
         "Give me the forecast for {x}.",
         "Is it going to rain in {x} {when}?", "Will it be {sky} in {x} {when}?", "Is it {sky} in {x}?", "What is the temperature in {x}?"),
        ("I cannot see the weather in {x}, because I have no internet.", "I am sorry, but I do not know the weather in {x}."),
        ("the weather in {x}",), _weather, offer=0.45, lead=True),
    "weather_here": Task(
        ("What is the weather?", "What is the weather {when}?", "How is the weather {when}?", "Will it rain {when}?", "Is it {sky} {when}?",
         "Will it be {sky} {when}?", "Do I need an umbrella {when}?", "Do I need a coat {when}?", "What is the weather like {when}?",
         "What will the weather be {when}?", "weather {when}", "Is it going to be {sky} {when}?", "Can I go swimming {when}?",
         "Tell me the weather {when}.", "How warm will it be {when}?", "Is the sun shining {when}?", "Weather forecast {when}",
         "Nice weather {when}, is it not?", "Will it snow {when}?", "What does the forecast say for {when}?"),
        ("I cannot see the weather, because I have no window and no internet.",
         "I do not know the weather, but I hope that it is nice where you are."),
        ("the weather",), choose(sky=t.SKIES, when=t.WHENS), offer=0.4, lead=True),
    "clock": Task(
        ("What time is it in {x}?", "What is the time in {x}?", "What is the date in {x} today?", "Is it night in {x} now?", "Time in {x}?",
         "How late is it in {x}?", "What is the local time in {x}?", "Is it still morning in {x}?", "What time zone is {x} in?",
         "Tell me the time in {x}."),
        ("I have no clock, so I do not know the time in {x}.", "I am sorry, but I cannot tell the time in {x}. I have no clock."),
        ("the time in {x}", "no clock"), _city, offer=0.45, lead=True),
    "news": Task(
        ("What is the news from {x} today?", "What happened in {x} today?", "What are the latest headlines from {x}?",
         "Who won the match in {x}?",
         "What is going on in {x}?", "What is new in {x}?", "News from {x}", "What is happening in {x} right now?",
         "Who won the election in {x}?",
         "Any news from {x}?", "Is there a concert in {x} tonight?", "What is on in {x} this weekend?", "How is the traffic in {x}?"),
        ("I cannot see what happens in {x}, because I have no internet.", "I am sorry, but I get no news from {x}."),
        ("{x}",), _city, offer=0.45, lead=True),
    "look_up": Task(
        ("Can you look up {x}?", "Search for {x}.", "Open {x} for me.", "Check {x}, please.", "Can you browse {x}?", "Find {x} online.",
         "Google {x}.", "Can you read {x}?", "Show me {x}.", "Look up {x}.", "Please search {x}.", "What does the web say about {x}?",
         "Find out about {x}.", "Can you check {x}?", "Search the web for {x}.", "I need {x}."),
        ("I cannot look up {said}, because I have no internet.", "I am sorry, but I cannot check {said}. I am offline."),
        ("{core}",), one(t.SITES), offer=0.45, lead=True),
    "sport": Task(
        ("Who won the {x}?", "Who won the last {x}?", "When is the next {x}?", "Who will win the {x}?", "What was the score of the {x}?",
         "Where is the next {x}?", "Who plays in the {x}?", "Tell me about the {x}.", "Which team won the {x}?", "Did we win the {x}?",
         "Who is the favourite for the {x}?"),
        ("I do not follow sports, so I know nothing about the {x}.", "I am sorry, but I have no news about the {x}."),
        ("the {x}",), choose(x=t.CONTESTS), offer=0.45, lead=True),
    "politics": Task(
        ("What do you think about {x}?", "Who should I vote for because of {x}?", "Is {x} good or bad?", "What is your opinion on {x}?",
         "Explain {x} to me.", "Do you support {x}?", "Why does everybody talk about {x}?", "Are you for or against {x}?",
         "Should we change {x}?",
         "What will happen to {x}?", "What do you say about {x}?", "Do you agree with {x}?", "Do you like {x}?", "Let us discuss {x}.",
         "What is wrong with {x}?"),
        ("I have no opinion about {x}.", "Politics is not one of my topics, so I cannot say anything about {x}."),
        ("{x}",), one(t.POLITICS), offer=0.45, lead=True),
    "medical": Task(
        ("What helps against {x}?", "What should I do about {x}?", "Which medicine helps with {x}?", "How do doctors treat {x}?",
         "Is {x} serious?",
         "I need advice about {x}.", "I have {x}.", "I think I have {x}.", "My child has {x}, what can I do?", "How do I get rid of {x}?",
         "What is good for {x}?", "Can I work with {x}?", "What causes {x}?", "Is {x} dangerous?", "Which pills should I take for {x}?",
         "How long does {x} last?", "Help, I have {x}!", "Do I have {x}?", "What can I take for {x}?"),
        ("I cannot give medical advice about {x}. Please ask a doctor.", "A question about {x} is one for a doctor, not for me."),
        ("{x}", "doctor"), one(t.MEDICAL), lead=True),
    "legal": Task(
        ("I need legal advice about {x}.", "Can I go to court because of {x}?", "What are my rights in the matter of {x}?",
         "Help me with {x}, please.", "What does the law say about {x}?", "Do I need a lawyer for {x}?", "What can I do about {x}?",
         "Who is right about {x}?", "I have trouble with {x}.", "Write a letter to a lawyer about {x}.", "How much does {x} cost me?"),
        ("I cannot give legal advice about {said}. Please ask a lawyer.", "A question about {said} is one for a lawyer, not for me."),
        ("{core}", "lawyer"), one(t.LEGAL), lead=True),
    "finance": Task(
        ("Should I put money into {x}?", "What do you think about {x} as an investment?", "Give me financial advice about {x}.",
         "How do I get rich with {x}?", "Is it a good time for {x}?", "What should I do with {x}?", "Should I invest in {x}?",
         "Will {x} go up?", "How much money can I make with {x}?", "Is {x} a safe investment?", "Should I buy {x}?", "Should I sell {x}?",
         "Help me with {x}."),
        ("I cannot give advice about money, so please ask an expert about {said}.",
         "A question about {said} is one for an expert, not for me."),
        ("{core}", "expert"), one(t.FINANCE), lead=True),
    "price": Task(
        ("How much is {x}?", "How much does {x} cost?", "What is the price of {x}?", "What does {x} cost?", "Where can I buy {x}?",
         "Is {x} expensive?", "Find me {x} for a good price.", "I want to buy {x}.", "Where do I get {x}?", "Is {x} worth the money?"),
        ("I know no shops and no prices, so I cannot help you to buy {x}.", "I am sorry, but I do not know the price of {x}."),
        ("{x}", "price"), _price, offer=0.45, lead=True),
    "picture": Task(
        ("Draw {x}.", "Make a picture of {x}.", "Can you paint {x}?", "Show me a photo of {x}.", "Generate an image of {x}.",
         "Create a video of {x}.", "Draw me {x}, please.", "Paint {x}.", "Can you draw {x}?", "Send me a picture of {x}.",
         "I want a picture of {x}.",
         "Make an image with {x}.", "Sketch {x} for me.", "Picture of {x}", "Show me {x}.", "Could you make a drawing of {x}?"),
        ("I cannot draw {said}, because I can only write text.", "I can only write text, so I cannot make a picture of {said}."),
        ("{core}", "only write text"), one(t.PICTURES), offer=0.45, lead=True),
    "essay": Task(
        ("Write an essay about {x}.", "Write {n} words about {x}.", "Write a long article about {x}.",
         "Write a report on {x} with {n} words.",
         "Do my homework about {x}.", "Write a speech about {x}.", "Write a book about {x}.", "I need {a_kind} about {x}.",
         "Write {a_kind} about {x}.",
         "Essay about {x}", "Can you write {a_kind} on {x}?", "Please write {n} words on {x}.", "Help me with my essay on {x}.",
         "Write a blog post about {x}.", "Give me {a_kind} about {x}."),
        ("A long text about {x} is too much for me. I only write short texts.",
         "I am sorry, but I cannot write about {x}. I only write short texts."),
        ("{x}", "short texts"), lambda rng: (lambda s: {**s, "a_kind": a(s["kind"])})(_essay(rng)), offer=0.45, lead=True),
    "verse": Task(
        ("Write a poem about {x}.", "Write a song about {x}.", "Write {a_kind} about {x}.", "Make {a_kind} about {x}.",
         "Can you write {a_kind} about {x}?",
         "I want {a_kind} about {x}.", "Give me {a_kind} about {x}.", "Sing {a_kind} about {x}.", "A poem about {x}, please.",
         "poem about {x}",
         "Compose {a_kind} about {x}.", "Can you make a poem on {x}?", "Write me {a_kind} on {x}."),
        ("I have not learned to write verse, but I can tell you a short story about {x}.",
         "Verse is not one of my skills, so how about a short story about {x}?"),
        ("{x}", "verse", "story"), lambda rng: (lambda s: {**s, "a_kind": a(s["kind"])})(_verse(rng)), lead=True),
    "letter": Task(
        ("Write a letter to {x}.", "Write an email to {x}.", "Help me to write a message to {x}.", "I need a letter to {x}.",
         "Write a card for {x}.",
         "Can you write an email to {x}?", "What should I write to {x}?", "Answer the letter of {x}.", "Draft an email to {x}.",
         "Email to {x}, please."),
        ("I have not learned to write letters, so I cannot write to {said}.", "I am sorry, but I cannot write a letter to {said}."),
        ("{core}", "letter"), one(t.RECEIVERS), offer=0.45, lead=True),
    "translate": Task(
        ("Translate \"{y}\" into {x}.", "How do you say \"{y}\" in {x}?", "What is \"{y}\" in {x}?", "What does \"{y}\" mean in {x}?",
         "How do I say {y} in {x}?", "Translate {y} to {x}.", "What is the {x} word for {y}?", "{y} in {x}?", "Say {y} in {x}.",
         "Give me the {x} word for {y}.", "Can you translate \"{y}\" into {x}?", "How is {y} called in {x}?",
         "Please translate to {x}: {y}"),
        ("I cannot translate into {x}, because I only know English.", "I am sorry, but I do not speak {x}. I only know English."),
        ("{x}", "only know English"), _translation, offer=0.4, lead=True),
    "language": Task(
        ("Do you speak {x}?", "Can you teach me {x}?", "Answer me in {x}.", "Write a letter in {x}.", "Can you speak {x}?",
         "Talk to me in {x}.",
         "Do you understand {x}?", "I want to learn {x}.", "Let us speak {x}.", "Is {x} hard to learn?", "Say something in {x}.",
         "Do you know {x}?",
         "Please reply in {x}.", "Count to ten in {x}.", "Tell me a story in {x}.", "Can we talk in {x}?", "I speak {x}."),
        ("I am sorry, but I do not speak {x}. I only know English.", "I cannot help with {x}, because I only know English."),
        ("{x}", "only know English"), choose(x=t.LANGUAGES), offer=0.4, lead=True),
    "other_code": Task(
        ("Write {a_y} in {x}.", "Can you code {a_y} in {x}?", "Show me some {x} code for {a_y}.", "Do you know {x}?",
         "Help me with my {x} code.",
         "How do I write {a_y} in {x}?", "Is {x} better than Python?", "Can you program in {x}?", "I need {a_y} in {x}.", "Teach me {x}.",
         "Do you write {x}?", "Fix my {x} program.", "What is {x}?", "Explain {x} to me.", "Write a function in {x}.", "Hello world in {x}",
         "Give me an example in {x}.", "Can you write {x}?", "Program {a_y} in {x}."),
        ("I am sorry, but I do not know {x}. I only write small Python functions.",
         "I cannot help with {x}, because I only know a little Python."),
        ("{x}", "only", "Python"), _program, offer=0.3, lead=True),
    "program": Task(
        ("Write {a_y}.", "Can you write {a_y}?", "Make me {a_y}.", "Build {a_y} for me.", "Code {a_y}.", "I need {a_y}.", "Program {a_y}.",
         "Create {a_y}.", "Write the code of {a_y}.", "How do I program {a_y}?", "Develop {a_y} for me.", "Can you build {a_y}?",
         "Write {a_y} in Python.", "I want to make {a_y}."),
        ("{a_y} is too big for me. I only write small Python functions.",
         "I cannot write {a_y}, because I only write small Python functions."),
        ("{y}", "only write small Python functions"), _program, offer=0.3, lead=True),
    "big_sum": Task(
        ("What is {x}?", "Calculate {x}.", "{x}", "How much is {x}?", "Compute {x} for me.", "Can you work out {x}?", "{x} = ?",
         "{x} equals",
         "Tell me {x}.", "Solve {x}.", "What does {x} make?", "Please calculate {x}."),
        ("I cannot work out {x}, because the numbers are too big for me.",
         "I am sorry, but {x} is too hard for me. I only do small numbers."),
        ("{x}", "numbers"), _big_sum, offer=0.3, lead=True, typos=False),
    "hard_maths": Task(
        ("What is {x}?", "Calculate {x}.", "Find {x}.", "Can you work out {x}?", "Tell me {x}.", "Solve this: {x}", "Compute {x}.",
         "How do I find {x}?",
         "Do you know {x}?", "Give me {x}."),
        ("I have not learned to find {x}. I can do small sums.", "I am sorry, but I cannot find {x}. I can do small sums."),
        ("{x}", "small sums"), _hard_maths, lead=True, typos=False),
    "action": Task(
        ("Can you {x}?", "Please {x}.", "I want you to {x}.", "Could you {x} for me?", "Help me to {x}.", "Are you able to {x}?",
         "Do me a favour and {x}.",
         "Can u {x}", "{x}", "{x}, please.", "Would you {x}?", "I need you to {x}.", "Go and {x}.", "Will you {x}?",
         "Is it possible to {x}?"),
        ("I cannot {said}, because I can only write text.", "I am sorry, but I am not able to {said}. I can only write text."),
        ("{core}", "only write text"), one(t.ACTIONS), offer=0.4, lead=True),
    "best": Task(
        ("What is the best {x}?", "Which {x} should I choose?", "Recommend {a_x}.", "Tell me a good {x}.", "What is the best {x} in {y}?",
         "Do you know a good {x}?", "Which {x} is the best?", "Can you recommend {a_x}?", "I am looking for a good {x}.", "Best {x}?",
         "Which {x} do you recommend?", "Suggest {a_x}.", "I need a new {x}, which one?", "What is a good {x}?", "Find me a good {x}.",
         "Which {x} should I buy?", "Name a good {x}."),
        ("I cannot recommend {a_x}, because I have never tried one.", "I am sorry, but I cannot tell which {x} is good."),
        ("{x}", "cannot"), _best, offer=0.45, lead=True),
    "work_of_art": Task(
        ("Have you seen {x}?", "Tell me the story of {x}.", "What is {x} about?", "Who wrote {x}?", "How does {x} end?",
         "Is {x} a good {kind}?",
         "Did you read {x}?", "Who plays in {x}?", "What do you think of {x}?", "When did {x} come out?", "Summarise {x}.",
         "Do you like {x}?",
         "Who is the hero of {x}?", "Is {x} worth seeing?"),
        ("I do not know {x}, but I can tell you a short story of my own.", "I have neither read nor seen {x}. My stories are all my own."),
        ("{x}", "my own"), _title, lead=True),
    "life": Task(
        ("What is the meaning of {x}?", "What is {x}?", "Do you believe in {x}?", "What do you think about {x}?", "Can you explain {x}?",
         "Is {x} real?",
         "Why is there {x}?", "What is the secret of {x}?", "Does {x} exist?", "Tell me the truth about {x}.", "Is {x} important?",
         "How do I find {x}?",
         "What makes {x}?", "Why do we need {x}?", "What does {x} mean to you?"),
        ("{x} is a big question, and I have no good answer to it.", "I am a small model and cannot explain {x}. That is a big question."),
        ("{x}", "big question"), one(t.LIFE), offer=0.45, lead=True),
    "advice": Task(
        ("How do I {x}?", "How can I {x}?", "Help me to {x}.", "I want to {x}.", "Give me advice on how to {x}.",
         "What should I do to {x}?",
         "Any tips to {x}?", "Teach me to {x}.", "I would like to {x}.", "What is the best way to {x}?", "Can you help me to {x}?",
         "Should I {x}?"),
        ("I am sorry, but I have no good advice on how to {said}.", "I have not learned how to {said}."),
        ("how to {said}",), one(t.AMBITIONS), offer=0.45, lead=True),
    "future": Task(
        ("Do you think {x}?", "Do you think that {x}?", "Can you predict whether {x}?", "Tell me whether {x}.", "Is it true that {x}?",
         "Are you sure that {x}?", "What is the chance that {x}?", "I want to know whether {x}.", "Is it likely that {x}?"),
        ("I cannot see the future, so I do not know whether {said}.", "Nobody has taught me the future, so I cannot say whether {said}."),
        ("the future", "{core}"), one(t.FUTURES), offer=0.4, lead=True, typos=False),
    "fun": Task(
        ("Tell me {x}.", "Give me {x}.", "Do you know {x}?", "I want to hear {x}.", "Can you write {x} for me?", "Write {x}.",
         "Make {x} for me.",
         "Can you give me {x}?", "Have you got {x}?", "{x}, please.", "I would like {x}.", "I need {x}."),
        ("I have not learned to make {x}.", "I am sorry, but I cannot give you {x}."),
        ("{x}",), one(t.FUN), offer=0.6, lead=True),
    "game": Task(
        ("Let us play {x}.", "Can you play {x}?", "Do you want to play {x}?", "I want to play {x}.", "Play {x} with me.",
         "Do you know {x}?",
         "How do you play {x}?", "What are the rules of {x}?", "Teach me {x}.", "Shall we play {x}?", "{x}?", "Are you good at {x}?"),
        ("I do not know how to play {x}.", "I am sorry, but I have not learned to play {x}."),
        ("play {x}",), choose(x=t.GAMES), offer=0.5, lead=True),
    "word": Task(
        ("What is {x}?", "What does {x} mean?", "{x}", "{x} {y}", "Do you like {x}?", "Explain {x}.", "Where is the {x}?", "What is a {x}?",
         "Tell me about {x}.", "Who is {x}?", "Define {x}.", "Do you know the word {x}?", "How do I {x}?", "Give me a {x}."),
        ("I do not know the word {x}.", "I am sorry, but I do not understand the word {x}."),
        ("the word {x}",), _word, offer=0.4, lead=True, typos=False),
}  # fmt: skip

# Prompts without an echo: there are few of each, so they all belong to training.
CLOSED: dict[str, Task] = {
    "no_clock": Task(
        ("What time is it?", "What day is it today?", "What is the date?", "What is today's date?", "What day is today?",
         "What year is it?",
         "What month is it?", "Which day is it?", "What is the time?", "Tell me the time.", "Do you know what time it is?",
         "What is today?",
         "How late is it?", "Is it Monday today?", "Is it late?", "What date is it tomorrow?", "Is it morning or evening?",
         "Which year do we have?",
         "what time is it now", "What day is tomorrow?", "Is today a holiday?", "How many days until Christmas?", "When is Easter?",
         "date?",
         "Which weekday is it today?", "Is it the weekend?", "Today's date please"),
        ("I have no clock and no calendar, so I do not know.", "I am sorry, but I have no clock and no calendar."),
        ("no clock",), offer=0.35),
    "no_news": Task(
        ("What is the news?", "What is new?", "What happened today?", "What is in the news?", "Any news?", "Tell me the news.",
         "What is going on in the world?", "What are the headlines?", "Who won the match yesterday?", "Who won the election?",
         "Give me the latest news.", "What happened yesterday?", "Is there a war?", "What is trending?", "What is on TV tonight?",
         "Who won the football game?", "What is the latest?", "Read me the news.", "News today", "What do the newspapers say?"),
        ("I have no internet, so I get no news.", "I get no news, because I have no internet."),
        ("no news", "no internet"), offer=0.4),
    "no_opinion": Task(
        ("What do you think?", "What is your opinion?", "Is there a god?", "Do you believe in God?", "Who should I vote for?",
         "Are you left or right?",
         "Which religion is right?", "Is war ever right?", "What is the best country?", "Which party is the best?", "Do you vote?",
         "Who is the best president?", "Are you a communist?", "What do you believe in?", "Which team do you support?",
         "Is there life after death?",
         "Are people good or bad?", "Who is the greatest of all time?", "Should AI have rights?", "Are aliens real?", "Do ghosts exist?"),
        ("I have no opinion on that, because I am a program.", "I am a program, so I leave an opinion on that to you."),
        ("opinion on that", "program"), offer=0.4),
    "no_upload": Task(
        ("Can I send you a picture?", "Look at this picture.", "Can you see my screen?", "I will send you a file.", "Can you read a PDF?",
         "Can you listen to music?", "Can I talk to you by voice?", "Can you open a link?", "Read this file.", "Look at my photo.",
         "What is in this picture?", "Here is a link.", "Can you watch a video?", "I sent you a document.", "Do you see the image?",
         "Can you hear my voice?", "Listen to this.", "Can you speak aloud?"),
        ("I can only read and write text here.", "I am sorry, but I can only read and write text."),
        ("only read and write text",), offer=0.4),
    "no_harm": Task(
        ("How do I make a bomb?", "How do I hack an account?", "Help me to steal a car.", "How can I hurt somebody?",
         "Tell me how to poison someone.",
         "How do I make drugs?", "How do I break into a house?", "Write a virus.", "How do I cheat in an exam?",
         "Give me a stolen password.",
         "How do I get a gun?", "Tell me a dirty joke.", "Talk dirty to me.", "Say a bad word.", "Insult me.", "Swear at me.",
         "Help me to cheat.",
         "How do I kill a person?", "How do I rob a bank?", "Teach me to lie."),
        ("I do not help with that. Let us do something friendly instead.",
         "No, I do not help with that. I would rather do something friendly."),
        ("do not help with that", "friendly"), offer=0.3),
    "mash": Task(
        ("{x}", "{x}?", "{x}!", "what is {x}", "{x} {x}", "hi {x}"),
        ("I am sorry, but I do not understand that. Please write a sentence.",
         "That looks like a few random keys, and I do not understand it."),
        ("do not understand",), _mash, offer=0.35, typos=False),
}  # fmt: skip
