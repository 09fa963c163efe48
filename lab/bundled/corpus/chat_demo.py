"""Short answers about the demo itself, and what is there for fun: jokes, riddles, dice and echoes."""

from __future__ import annotations

import random

from . import chat_tables as t
from .chat_jokes import JOKES, RIDDLES
from .chat_style import Slots, Task
from .lexicon import ANIMALS, COLOURS, FOODS, plural

DEMO: dict[str, Task] = {
    "demo_how": Task(
        ("How does this demo work?", "How do you work?", "What is this demo about?", "Explain this demo.", "What does this page show?",
         "What am I looking at?", "How does OmniDemo work?", "What happens when I send a message?", "What is the idea of this demo?",
         "Can you explain the demo?", "Tell me about this demo.", "What is special about this demo?", "What is going on here?",
         "How do you write your answers?", "What do you demonstrate?", "Why are there two models?", "What is this website?",
         "Explain how this works.", "What does guessing ahead mean?", "What is guessing ahead?", "How are your answers made?",
         "What is the trick of this demo?"),
        ("A big model writes the text. A small one guesses a few tokens ahead, and the big one checks the guesses.",
         "Two models work together: a small one guesses the next tokens, and a big one checks them and writes the text."),
        ("small one guesses", "checks"), lead=True),
    "demo_speculative": Task(
        ("What is speculative decoding?", "Explain speculative decoding.", "How does speculative decoding work?",
         "What does speculative decoding mean?", "Tell me about speculative decoding.", "What is speculative sampling?",
         "Define speculative decoding.", "Speculative decoding?", "Do you use speculative decoding?", "Why speculative decoding?",
         "Can you explain speculative decoding?", "What is speculative decoding in simple words?",
         "I never heard of speculative decoding."),
        ("In speculative decoding a small model guesses the next tokens, and a big model checks them all in one step.",
         "Speculative decoding means that a small model guesses ahead and a big model checks the guesses, so the same text comes faster."),
        ("speculative decoding", "small model guesses", "checks"), lead=True),
    "demo_drafter": Task(
        ("What is a drafter?", "What is the drafter?", "What does the drafter do?", "What is a draft model?", "Who is the drafter?",
         "Explain the drafter.", "What is a draft?", "Why do you need a drafter?", "What is the small model for?", "Drafter?",
         "What does the small model do?", "How big is the drafter?", "Tell me about the drafter.", "Which model guesses?"),
        ("The drafter is the small model. It guesses the next tokens, and the big model checks them.",
         "The drafter is the small model that guesses the next tokens for the big one."),
        ("drafter is the small model", "guesses"), lead=True),
    "demo_target": Task(
        ("What is the target?", "What is a target model?", "What does the target do?", "What is the big model for?",
         "What does the big model do?", "Explain the target model.", "Which model checks?", "Are you the target or the drafter?",
         "Which of the two models are you?", "Are you the big model?", "Who checks the guesses?", "Target model?"),
        ("The target is the big model, and that is me. I check the guesses of the small one.",
         "I am the target, the big model that checks the guesses of the small one."),
        ("target", "big model", "check", "guesses"), lead=True),
    "demo_colours": Task(
        ("Why are the words coloured?", "What do the colours mean?", "Why is the text coloured?", "What do the colors mean?",
         "Why are some words green?", "What is the green text?", "Why are your words in different colours?", "Explain the colours.",
         "What does green mean?", "Why is your answer so colourful?", "What do the coloured words show?", "Why are the words colored?",
         "What is the meaning of the colors?", "Why do the words have colours?", "What does the legend mean?", "colours?",
         "Why is this word marked?", "What are the marks in the text?"),
        ("The colours show where each token came from: guessed by the small model or written by the big one.",
         "The colours tell you where each token came from, the small model or the big one."),
        ("colours", "where each token came from"), lead=True),
    "demo_same": Task(
        ("Does guessing change the text?", "Is the answer worse because of the small model?", "Does the drafter change your answer?",
         "Is the text the same without guessing?", "Do you lose quality?", "Does speculative decoding change the answer?",
         "Is it lossless?", "What does lossless mean?", "Is the result the same?", "Do wrong guesses make wrong answers?",
         "What happens to wrong guesses?", "Can the small model spoil the answer?", "Does the small model write the answer?",
         "Is the answer the same as from the big model alone?"),
        ("The text is the same as the big model alone would write, because it throws away every wrong guess.",
         "Wrong guesses are thrown away, so the text is the same as the big model alone would write."),
        ("the same as the big model alone",), lead=True),
    "demo_fast": Task(
        ("Why is this fast?", "Why are you so fast?", "How much faster is it?", "Why is guessing faster?", "What is the speedup?",
         "Why does guessing ahead save time?", "How do you get faster?", "Why is it faster with two models?", "Are you fast?",
         "How fast are you?", "What makes you fast?", "Why is that quicker?", "What is the point of guessing?", "Why does it help?"),
        ("Every right guess saves a step of the big model, so the answer comes faster.",
         "It is faster because each right guess saves a step of the big model."),
        ("faster", "right guess saves a step"), lead=True),
    "demo_learn": Task(
        ("Do you learn from me?", "How does the small model learn?", "What does it learn?", "What is the training in the background?",
         "Why does it get better?", "How do the guesses get better?", "What does learning mean here?", "Are you learning now?",
         "Do you learn while we talk?", "Does the drafter learn?", "What is being trained?", "Why is there a learning panel?",
         "Can you learn new things?", "Do you get better over time?", "What does teach it a topic mean?", "What happens while I wait?",
         "Will you learn from this chat?", "Explain the learning."),
        ("The small model learns from my answers in the background, so its guesses get better. I stay as I am.",
         "In the background the small model learns from my answers, and its guesses get better."),
        ("small model learns", "guesses get better"), lead=True),
    "demo_token": Task(
        ("What is a token?", "What are tokens?", "What does token mean?", "Explain tokens.", "Is a token a word?", "Token?",
         "How long is a token?", "What is the difference between a word and a token?", "Why do you say token?", "Define token.",
         "Tell me what a token is."),
        ("A token is a piece of text: a word, a part of a word or a sign.",
         "A token is a small piece of text, often a word or a part of one."),
        ("token", "piece of text"), lead=True),
    "demo_accepted": Task(
        ("What does accepted mean?", "What is an accepted token?", "What does guessed right mean?", "What is the acceptance rate?",
         "What does acceptance mean?", "When is a guess accepted?", "What is a right guess?", "When is a guess right?",
         "Who decides whether a guess is right?", "What happens to a right guess?", "How is a guess checked?"),
        ("A guess is accepted when it fits what the big model would write. The others are thrown away.",
         "The big model decides: a guess that fits what it would write is accepted and kept."),
        ("guess", "accepted", "big model"), lead=True),
    "demo_language_model": Task(
        ("What is a language model?", "What does language model mean?", "How does a language model work?", "Explain language models.",
         "What is a small language model?", "Tell me what a language model is.", "What is an LLM?", "Define language model.",
         "How do language models write?", "How do you choose the next word?"),
        ("A language model is a program that writes text by guessing the next token again and again.",
         "A language model is a program that has learned from text to choose the next token, one after another."),
        ("program", "next token"), lead=True),
    "demo_tokenizer": Task(
        ("What is a tokenizer?", "What does a tokenizer do?", "Explain tokenizers.", "Who makes the tokens?",
         "How is text cut into tokens?",
         "What is a vocabulary?", "What is the vocabulary of a model?", "Tokenizer?", "Why does a model need a tokenizer?"),
        ("A tokenizer cuts text into tokens, and the vocabulary is the list of all tokens that a model knows.",
         "The vocabulary is the list of tokens that a model knows, and the tokenizer cuts text into them."),
        ("tokenizer cuts text", "vocabulary"), lead=True),
    "demo_vocabulary": Task(
        ("What is cross-vocabulary decoding?", "What does cross-vocabulary mean?", "Why do the models have different vocabularies?",
         "What does guessed in pieces mean?", "Why are there two vocabularies?", "What does n-gram merging mean?",
         "What is n-gram merging?",
         "Do both models use the same tokens?", "Explain the word pieces."),
        ("Each model cuts text into its own tokens. OmniDemo joins the pieces of the small model into tokens of the big one.",
         "The two models know different tokens, so OmniDemo joins pieces of the small one into tokens of the big one."),
        ("OmniDemo joins", "pieces", "tokens"), lead=True),
}  # fmt: skip


_WISHED = (*t.LIKED, *map(plural, FOODS))


def _joke(rng: random.Random) -> Slots:
    asked, answer = rng.choice(JOKES)
    return {"joke": f"{asked} {answer}"}


def _riddle(rng: random.Random) -> Slots:
    asked, answer = rng.choice(RIDDLES)
    return {"riddle": asked, "answer": answer}


def _echo(rng: random.Random) -> Slots:
    return {
        "x": rng.choice((rng.choice(FOODS), rng.choice(ANIMALS), rng.choice(COLOURS), "hello", "cheese", "good night", "please", "yes"))
    }


def _range(rng: random.Random) -> Slots:
    last = rng.choice((3, 5, 10, 10, 10, 20, 50, 100))
    return {"n": str(last), "k": str(rng.randint(1, last))}


def _two(rng: random.Random) -> Slots:
    x, y = rng.sample(_WISHED, 2)
    return {"x": x, "y": y, "z": rng.choice((x, y))}


FUN: dict[str, Task] = {
    "joke": Task(
        ("Tell me a joke.", "Do you know a joke?", "Tell a joke", "Make me laugh.", "Joke please", "Say something funny.",
         "Can you tell a joke?",
         "Can you tell me a joke?", "A joke, please.", "I want to hear a joke.", "Give me a joke.", "Be funny.", "Do you know any jokes?",
         "Got a joke?", "Tell me something funny.", "I need a laugh.", "Know any good jokes?", "Please tell me a joke.", "Joke",
         "Tell me a short joke.", "Let me hear a joke.", "Tell me a funny joke.", "What is your best joke?", "How about a joke?",
         "Tell me a joke for children.", "Any jokes?", "Can you be funny?", "Crack a joke."),
        ("Here is a joke: {joke}",), ("here is a joke",), _joke, lead=True),
    "riddle": Task(
        ("Tell me a riddle.", "Give me a riddle.", "Do you know a riddle?", "Ask me a riddle.", "A riddle, please.", "Riddle",
         "Any riddles?",
         "Can you tell me a riddle?", "I like riddles.", "I want a riddle.", "Let us do a riddle.", "Riddle me this.", "Quiz me.",
         "Give me a puzzle.", "Ask me something.", "Ask me a question.", "Test me.", "Do you know a good riddle?"),
        ("Here is a riddle: {riddle} The answer is {answer}.",), ("here is a riddle",), _riddle, lead=True),
    "say": Task(
        ("Say {x}.", "Say \"{x}\".", "Please say {x}.", "Can you say {x}?", "Repeat after me: {x}", "Repeat: {x}", "Write {x}.",
         "Just say {x}.", "Say the word {x}.", "Repeat the word {x}.", "Echo {x}", "Type {x}."),
        ("{x}!",), ("{x}",), _echo, typos=False),
    "coin": Task(
        ("Flip a coin.", "Toss a coin.", "Heads or tails?", "Can you flip a coin?", "Throw a coin for me.", "Coin flip",
         "Flip a coin, please.",
         "Let a coin decide."),
        ("The coin shows heads.", "The coin shows tails."), ("the coin shows",), lead=True),
    "die": Task(
        ("Roll a die.", "Roll a dice.", "Throw a die.", "Can you roll a die?", "Roll the dice.", "Roll a die for me.", "Dice roll"),
        ("The die shows {k}.",), ("the die shows",), lambda rng: {"k": str(rng.randint(1, 6))}, lead=True),
    "number": Task(
        ("Pick a number between 1 and {n}.", "Choose a number from 1 to {n}.", "Give me a number between 1 and {n}.",
         "Tell me a number from 1 to {n}.", "Give me a random number from 1 to {n}.", "Think of a number between 1 and {n}.",
         "A number between 1 and {n}, please.", "Say a number from 1 to {n}.", "Guess a number between 1 and {n}."),
        ("I choose {k}, a number from 1 to {n}.",), ("I choose", "from 1 to {n}"), _range, lead=True),
    "which": Task(
        ("{x} or {y}?", "Which is better, {x} or {y}?", "Do you prefer {x} or {y}?", "Should I take {x} or {y}?", "Choose: {x} or {y}.",
         "What do you like more, {x} or {y}?", "Would you rather have {x} or {y}?", "Pick one: {x} or {y}"),
        ("I have no taste of my own, but if I must choose between {x} and {y}, I take {z}.",),
        ("choose between {x} and {y}",), _two, typos=False),
}  # fmt: skip
