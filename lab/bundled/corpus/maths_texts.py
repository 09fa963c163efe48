"""The texts of the maths tasks: prompts (one per pattern), shapes of each worked step, closing sentences.

Slots: n and m are names (he, his, He belong to n); t, ts and u, us are things; box, boxes a container; z is the answer.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

from . import maths_numbers as num


class Task(NamedTuple):
    """One task: its name, its operations in order, its numbers and its texts; `things` picks the table of things."""

    name: str
    ops: str
    draw: Callable[[random.Random], num.Numbers]
    prompts: tuple[str, ...]
    steps: tuple[tuple[str, ...], ...]
    closings: tuple[str, ...]
    things: str = "any"


ONE_STEP: tuple[Task, ...] = (
    Task("add_find", "+", num.add, (
        "{n} has {a} {ts}. At the {place}, {he} finds {b} more. How many {ts} does {n} have now?",
        "{n} had {a} {ts} and then got {b} more. How many {ts} does {n} have in total?",
        "{n} has {a} {ts} in a {box} and puts in {b} more. How many {ts} does {n} have in the {box} now?",
        "How many {ts} does {n} have if {he} starts with {a} and gets {b} more?",
        "{m} gives {n} {b} {ts}. Before that, {n} had {a} {ts}. How many {ts} does {n} have now?",
        "On Monday {n} gets {a} {ts}. On Tuesday {he} gets {b} more {ts}. How many {ts} does {n} have then?",
    ), ((
        "{n} <start> with {a} {ts} and {b} more come, so that is {a} + {b} = {z} {ts}.",
        "There are {a} {ts} first and then {b} more, which makes {a} + {b} = {z} {ts}.",
        "{n} <have> {a} {ts} and <get> {b} more, and {a} + {b} = {z} {ts}.",
    ),), ("So {n} <have> {z} {ts} now.", "That makes {z} {ts} for {n}.")),
    Task("add_two_people", "+", num.add, (
        "{n} has {a} {ts} and {m} has {b} {ts}. How many {ts} do they have together?",
        "{n} collected {a} {ts}. {m} collected {b} {ts}. How many {ts} did they collect in all?",
        "How many {ts} do {n} and {m} have together if {n} has {a} and {m} has {b}?",
        "At the {place}, {n} counted {a} {ts} and {m} counted {b}. How many {ts} did they count altogether?",
        "{n} and {m} put their {ts} in one {box}. {n} puts in {a} and {m} puts in {b}. How many {ts} are in the {box}?",
    ), ((
        "{n} <have> {a} {ts} and {m} has {b}, so together that is {a} + {b} = {z} {ts}.",
        "With {a} {ts} from {n} and {b} from {m}, the total is {a} + {b} = {z} {ts}.",
        "The {a} {ts} of {n} and the {b} of {m} make {a} + {b} = {z} {ts}.",
    ),), ("So {n} and {m} have {z} {ts} together.", "Together, {n} and {m} have {z} {ts}.")),
    Task("add_two_things", "+", num.add, (
        "There are {a} {ts} and {b} {us} in the {box}. How many things are in the {box}?",
        "{n} has {a} {ts} and {b} {us}. How many things does {n} have in all?",
        "At the {place}, {n} sees {a} {ts} and {b} {us}. How many things does {n} see altogether?",
        "{n} buys {a} {ts} and {b} {us}. What is the total number of things?",
        "A {box} holds {a} {ts}. Another {box} holds {b} {us}. How many things do both hold together?",
    ), ((
        "There are {a} {ts} and {b} {us}, so that is {a} + {b} = {z} things.",
        "We count {a} {ts} and {b} {us}, which makes {a} + {b} = {z} things.",
        "The {a} {ts} and the {b} {us} make {a} + {b} = {z} things.",
    ),), ("So there are {z} things in all.", "That is {z} things altogether.")),
    Task("add_cost", "+", num.add, (
        "{n} buys {at} for {a} dollars and {au} for {b} dollars. How much does {n} pay?",
        "{At} costs {a} dollars and {au} costs {b} dollars. How much do they cost together?",
        "At the {place}, {n} pays {a} dollars for {at} and {b} dollars for {au}. How many dollars is that in all?",
        "What do {at} for {a} dollars and {au} for {b} dollars cost together?",
        "{n} wants {at} that costs {a} dollars and {au} that costs {b} dollars. How many dollars does {n} need?",
    ), ((
        "The {t} costs {a} dollars and the {u} costs {b} dollars, so that is {a} + {b} = {z} dollars.",
        "With {a} dollars for the {t} and {b} dollars for the {u}, the total is {a} + {b} = {z} dollars.",
        "The price of the {t} and the price of the {u} make {a} + {b} = {z} dollars.",
    ),), ("So the total price is {z} dollars.", "That is {z} dollars altogether.")),
    Task("add_score", "+", num.add, (
        "{n} scores {a} points in the first round of {game} and {b} points in the second round. What is the total score of {n}?",
        "In {game}, {n} gets {a} points and then {b} more points. How many points does {n} have?",
        "{n} and {m} play {game} as a team. {n} scores {a} points and {m} scores {b}. How many points does the team of {n} have?",
        "What is the total score of {n} in {game} after rounds of {a} and {b} points?",
        "{n} had {a} points in {game}. Then {he} won {b} points. How many points does {n} have now?",
    ), ((
        "The score of {n} is {a} points and {b} points, so that is {a} + {b} = {z} points.",
        "We put {a} points and {b} points together, which makes {a} + {b} = {z} points.",
        "First come {a} points and then {b} points, and {a} + {b} = {z} points.",
    ),), ("So the score of {n} is {z} points.", "That makes {z} points for {n}.")),
    Task("add_more_than", "+", num.add, (
        "{n} has {a} {ts}. {m} has {b} more {ts} than {n}. How many {ts} does {m} have?",
        "{m} has {b} more {ts} than {n}, and {n} has {a}. How many {ts} does {m} have?",
        "If {n} has {a} {ts} and {m} has {b} more than {n}, how many {ts} does {m} have?",
        "{n} found {a} {ts} at the {place}. {m} found {b} more than {n}. How many {ts} did {m} find?",
        "How many {ts} does {m} have if {n} has {a} and {m} has {b} more than {n}?",
    ), ((
        "{m} has {b} more {ts} than {n}, so {m} has {a} + {b} = {z} {ts}.",
        "{n} <have> {a} {ts} and {m} has {b} more, which makes {a} + {b} = {z} {ts} for {m}.",
        "{b} more than the {a} {ts} of {n} gives {m} {a} + {b} = {z} {ts}.",
    ),), ("So {m} has {z} {ts}.", "That makes {z} {ts} for {m}.")),
    Task("add_age", "+", num.age_later, (
        "{n} is {a} years old. How old will {n} be in {b} years?",
        "How old will {n} be in {b} years if {he} is {a} now?",
        "{n} is {a} years old. What age will {n} reach in {b} years?",
        "Today {n} turns {a}. What will be the age of {n} after {b} more years?",
        "{n}, who works at the {place}, is {a}. In {b} years, how old will {n} be?",
        "{b} years ago {n} was {a} years old. How old is {n} now?",
    ), ((
        "The age of {n} is {a} years and {b} years come on top, so that is {a} + {b} = {z} years.",
        "From {a} years we count {b} years on for {n}, which makes {a} + {b} = {z} years.",
        "We add {b} years to the {a} years of {n}, and {a} + {b} = {z} years.",
    ),), ("So the answer is {z} years.", "That is an age of {z} years.")),
    Task("add_minutes", "+", num.age_later, (
        "{n} spends {a} minutes {task} and {b} minutes {task2}. How many minutes is that in total?",
        "After {a} minutes of {task}, {n} does {b} minutes of {task2}. How many minutes does {n} need for both?",
        "How long does {n} need for {a} minutes of {task} and {b} minutes of {task2}?",
        "{n} is busy with {task} for {a} minutes and then with {task2} for {b} minutes. How many minutes pass?",
        "First {n} is {task} for {a} minutes. Then {n} is {task2} for {b} minutes. What is the total time in minutes?",
    ), ((
        "{n} <need> {a} minutes for {task} and {b} minutes for {task2}, so that is {a} + {b} = {z} minutes.",
        "The {task} takes {a} minutes and the {task2} takes {b} minutes, which makes {a} + {b} = {z} minutes for {n}.",
        "With {a} minutes of {task} and {b} minutes of {task2}, {n} <need> {a} + {b} = {z} minutes.",
    ),), ("So the total time is {z} minutes.", "That is {z} minutes altogether.")),
    Task("add_warmer", "+", num.rise, (
        "In the morning it is {a} degrees in {town}. By noon it is {b} degrees warmer. What is the temperature at noon?",
        "The temperature in {town} is {a} degrees and rises by {b} degrees. What is it now?",
        "It was {a} degrees in {town}. Then it got {b} degrees warmer. How many degrees is it now?",
        "How warm is it in {town} if it was {a} degrees and the temperature went up by {b} degrees?",
        "{n} reads {a} degrees in {town}. Later the temperature has gone up by {b} degrees. What does {n} read now?",
    ), ((
        "It was {a} degrees in {town} and it got {b} degrees warmer, so it is {a} + {b} = {z} degrees.",
        "The temperature in {town} goes up by {b} from {a}, which makes {a} + {b} = {z} degrees.",
        "Warmer by {b} degrees means that {town} has {a} + {b} = {z} degrees.",
    ),), ("So it is {z} degrees in {town}.", "The temperature in {town} is {z} degrees.")),
    Task("sub_give", "-", num.sub, (
        "{n} has {a} {ts}. {He} gives {b} of them to {m}. How many {ts} does {n} have left?",
        "{n} had {a} {ts} and gave {b} to {m}. How many {ts} are left?",
        "How many {ts} does {n} have left if {he} has {a} and gives {b} to {m}?",
        "From {his} {a} {ts}, {n} gives {b} to {m}. How many {ts} does {n} keep?",
        "At the {place}, {n} gives {b} {ts} to {m}. {n} had {a} {ts} before. How many {ts} does {n} have now?",
    ), ((
        "{n} <give> {b} of the {a} {ts} to {m}, so {a} - {b} = {z} {ts} are left.",
        "{n} <start> with {a} {ts} and <give> away {b} to {m}, which leaves {a} - {b} = {z} {ts}.",
        "After {b} of the {a} {ts} go to {m}, {n} <have> {a} - {b} = {z} {ts}.",
    ),), ("So {n} <have> {z} {ts} left.", "That leaves {z} {ts} for {n}.")),
    Task("sub_eat", "-", num.sub, (
        "There are {a} {ts} in the {box}. {n} eats {b} of them. How many {ts} are left?",
        "{n} brings {a} {ts} and {b} are eaten. How many {ts} remain?",
        "How many {ts} are left if there are {a} and {n} eats {b}?",
        "{n} takes {a} {ts} to the {place}. The guests eat {b}. How many {ts} does {n} take home?",
        "A {box} has {a} {ts}. {n} and {m} eat {b} of them. How many {ts} are still in the {box}?",
    ), ((
        "There were {a} {ts} and {b} were eaten, so {a} - {b} = {z} {ts} are left.",
        "We take {b} from {a} {ts}, which leaves {a} - {b} = {z} {ts}.",
        "After {b} of the {a} {ts} are eaten, {a} - {b} = {z} {ts} remain.",
    ),), ("So {z} {ts} are left.", "That leaves {z} {ts}."), "food"),
    Task("sub_lose", "-", num.sub, (
        "{n} had {a} {ts} but lost {b} at the {place}. How many {ts} does {n} still have?",
        "{n} sells {b} of {his} {a} {ts}. How many {ts} does {n} have left?",
        "There are {a} {ts} in a shop. {n} sells {b}. How many {ts} does {n} still have to sell?",
        "Out of {a} {ts}, {b} go missing. How many {ts} does {n} still have?",
        "{n} uses {b} {ts} out of {a}. How many {ts} does {n} still have?",
    ), ((
        "{n} had {a} {ts} and {b} are gone, so {a} - {b} = {z} {ts} are left.",
        "From {a} {ts} we take away {b}, which leaves {n} {a} - {b} = {z} {ts}.",
        "Without {b} of the {a} {ts}, {n} <have> {a} - {b} = {z} {ts}.",
    ),), ("So {n} still <have> {z} {ts}.", "That leaves {z} {ts} for {n}."), "small"),
    Task("sub_change", "-", num.sub, (
        "{At} costs {b} dollars. {n} pays with {a} dollars. How much change does {n} get?",
        "{n} has {a} dollars and buys {at} for {b} dollars. How much money does {n} have left?",
        "How much change does {n} get from {a} dollars for {at} that costs {b} dollars?",
        "{n} goes to the {place} with {a} dollars and spends {b} dollars on {at}. How many dollars are left?",
        "{n} pays {a} dollars for {at}. The price is {b} dollars. How many dollars does {n} get back?",
    ), ((
        "{n} <have> {a} dollars and the {t} costs {b} dollars, so {a} - {b} = {z} dollars are left.",
        "We take the price of the {t} from the money of {n}, which leaves {a} - {b} = {z} dollars.",
        "After paying {b} of the {a} dollars for the {t}, {n} <have> {a} - {b} = {z} dollars.",
    ),), ("So {n} <have> {z} dollars left.", "That leaves {z} dollars for {n}.")),
    Task("sub_compare", "-", num.sub, (
        "{n} has {a} {ts} and {m} has {b} {ts}. How many more {ts} does {n} have than {m}?",
        "{m} has {b} {ts}. {n} has {a} {ts}. How many more {ts} does {n} have?",
        "How many fewer {ts} does {m} have than {n} if {n} has {a} and {m} has {b}?",
        "At the {place}, {n} counts {a} {ts} and {m} counts {b}. How many more {ts} does {n} count?",
        "{n} collected {a} {ts}, and {m} collected only {b}. By how many {ts} is {n} ahead of {m}?",
    ), ((
        "{n} <have> {a} {ts} and {m} has {b}, so the difference is {a} - {b} = {z} {ts}.",
        "We compare {a} {ts} of {n} with {b} of {m}, and {a} - {b} = {z} {ts}.",
        "From the {a} {ts} of {n} we take the {b} of {m}, which makes {a} - {b} = {z} {ts}.",
    ),), ("So {n} <have> {z} more {ts} than {m}.", "The difference between {n} and {m} is {z} {ts}.")),
    Task("sub_fewer_than", "-", num.sub, (
        "{n} has {a} {ts}. {m} has {b} fewer {ts} than {n}. How many {ts} does {m} have?",
        "{m} has {b} fewer {ts} than {n}, and {n} has {a}. How many {ts} does {m} have?",
        "If {n} has {a} {ts} and {m} has {b} fewer than {n}, how many {ts} does {m} have?",
        "{n} found {a} {ts} at the {place}. {m} found {b} fewer than {n}. How many {ts} did {m} find?",
        "How many {ts} does {m} have if {n} has {a} and {m} has {b} fewer than {n}?",
    ), ((
        "{m} has {b} fewer {ts} than {n}, so {m} has {a} - {b} = {z} {ts}.",
        "{n} <have> {a} {ts} and {m} has {b} fewer, which makes {a} - {b} = {z} {ts} for {m}.",
        "{b} fewer than the {a} {ts} of {n} gives {m} {a} - {b} = {z} {ts}.",
    ),), ("So {m} has {z} {ts}.", "That makes {z} {ts} for {m}.")),
    Task("sub_age", "-", num.ages, (
        "{n} is {a} years old and {m} is {b} years old. How many years older is {n} than {m}?",
        "{m} is {b} and {n} is {a} years old. What is the age difference between {n} and {m}?",
        "How many years younger is {m} than {n} if {n} is {a} and {m} is {b}?",
        "{n} from {town} is {a} years old. {m} is {b} years old. By how many years is {n} older than {m}?",
        "What is the difference in age between {n}, who is {a}, and {m}, who is {b}?",
    ), ((
        "{n} <be> {a} and {m} is {b}, so the age difference is {a} - {b} = {z} years.",
        "We take the age of {m} from the age of {n}, which makes {a} - {b} = {z} years.",
        "The difference between the ages of {n} and {m} is {a} - {b} = {z} years.",
    ),), ("So {n} <be> {z} years older than {m}.", "{n} <be> older than {m} by {z} years.")),
    Task("sub_pages", "-", num.sub, (
        "A book has {a} pages. {n} has read {b} pages. How many pages are left?",
        "{n} is reading a book of {a} pages and has finished {b} of them. How many pages does {n} still have to read?",
        "How many pages does {n} still have to read if the book has {a} pages and {b} are done?",
        "At the {place}, {n} borrows a book with {a} pages and reads {b} of them. How many pages remain?",
        "{n} has read {b} pages of a book about {topic}. The book has {a} pages. How many pages are left to read?",
    ), ((
        "The book has {a} pages and {n} <have> read {b}, so {a} - {b} = {z} pages are left.",
        "{n} <have> finished {b} of {a} pages, which leaves {a} - {b} = {z} pages.",
        "From {a} pages we take the {b} that {n} <have> read, and {a} - {b} = {z} pages.",
    ),), ("So {n} still <have> to read {z} pages.", "That leaves {z} pages for {n}.")),
    Task("sub_need", "-", num.sub, (
        "{n} needs {a} {ts} and already has {b}. How many more {ts} does {n} need?",
        "{n} wants to collect {a} {ts}. {He} has {b} so far. How many {ts} are missing?",
        "How many more {ts} must {n} find to have {a} if {he} has {b} now?",
        "For the {place}, {n} has to bring {a} {ts}. {b} are ready. How many {ts} are still missing?",
        "A {box} has room for {a} {ts}. {n} has put in {b}. How many more {ts} can {n} put in?",
    ), ((
        "{n} <have> {b} of {a} {ts}, so {a} - {b} = {z} {ts} are missing.",
        "We take the {b} that are there from {a} {ts}, which leaves {a} - {b} = {z} {ts} for {n}.",
        "The goal of {n} is {a} {ts} and {b} are there, and {a} - {b} = {z} {ts}.",
    ),), ("So {z} more {ts} are needed.", "That means {z} more {ts}.")),
    Task("sub_colder", "-", num.fall, (
        "In {town} it is {a} degrees at noon. In the evening it is {b} degrees colder. What is the temperature in the evening?",
        "The temperature in {town} is {a} degrees and falls by {b} degrees. What is it now?",
        "It was {a} degrees in {town}. Then it got {b} degrees colder. How many degrees is it now?",
        "How warm is it in {town} if it was {a} degrees and the temperature went down by {b} degrees?",
        "{n} reads {a} degrees in {town}. Later the temperature has dropped by {b} degrees. What does {n} read now?",
    ), ((
        "It was {a} degrees in {town} and it got {b} degrees colder, so it is {a} - {b} = {z} degrees.",
        "The temperature in {town} goes down by {b} from {a}, which makes {a} - {b} = {z} degrees.",
        "Colder by {b} degrees means that {town} has {a} - {b} = {z} degrees.",
    ),), ("So it is {z} degrees in {town}.", "The temperature in {town} is {z} degrees.")),
    Task("sub_clock", "-", num.minutes, (
        "{Event} starts at {a} minutes past {c} and ends at {b} minutes past {c}. How many minutes does it last?",
        "How long is {event} that goes from {a} minutes past {c} to {b} minutes past {c}?",
        "{n} goes to {event}. It begins {a} minutes past {c} and is over {b} minutes past {c}. How many minutes is that?",
        "{n} is at {event} from {a} minutes past {c} until {b} minutes past {c}. How many minutes does it take?",
        "At {a} minutes past {c}, {event} begins. At {b} minutes past {c}, it ends. What is the length in minutes?",
    ), ((
        "It goes from minute {a} to minute {b} of the same hour, so that is {b} - {a} = {z} minutes.",
        "The hour is the same, and from {a} to {b} it is {b} - {a} = {z} minutes.",
        "We take the start at {a} from the end at {b}, which makes {b} - {a} = {z} minutes.",
    ),), ("So the {show} lasts {z} minutes.", "The length of the {show} is {z} minutes.")),
    Task("mul_boxes", "*", num.mul, (
        "{n} has {a} {boxes} with {b} {ts} in each. How many {ts} does {n} have?",
        "There are {b} {ts} in each {box}. {n} buys {a} {boxes}. How many {ts} is that in total?",
        "How many {ts} are in {a} {boxes} if each {box} holds {b} {ts}?",
        "{n} fills {a} {boxes} and puts {b} {ts} in each {box}. How many {ts} does {n} use?",
        "At the {place}, {n} carries {a} {boxes} of {b} {ts} each. How many {ts} are there altogether?",
        "One {box} holds {b} {ts}. How many {ts} do {a} {boxes} hold?",
    ), ((
        "There are {a} {boxes} of {b} {ts}, so that is {a} * {b} = {z} {ts}.",
        "Each of the {a} {boxes} has {b} {ts}, which makes {a} * {b} = {z} {ts}.",
        "{a} {boxes} times {b} {ts} make {a} * {b} = {z} {ts}.",
    ),), ("So there are {z} {ts} in all.", "That is {z} {ts} altogether.")),
    Task("mul_rows", "*", num.mul, (
        "There are {a} rows of {seats} with {b} {seats} in each row. How many {seats} are there?",
        "{n} makes {a} rows of {b} {seats}. How many {seats} is that?",
        "How many {seats} are in {a} rows if each row has {b} {seats}?",
        "At the {place} there are {a} rows, and each row has {b} {seats}. How many {seats} does {n} count?",
        "{n} arranges {seats} in {a} rows and {b} columns. How many {seats} does {n} arrange?",
    ), ((
        "There are {a} rows of {b} {seats}, so that is {a} * {b} = {z} {seats}.",
        "Each of the {a} rows has {b} {seats}, which makes {a} * {b} = {z} {seats}.",
        "{a} rows times {b} {seats} make {a} * {b} = {z} {seats}.",
    ),), ("So there are {z} {seats} in all.", "That is {z} {seats} altogether.")),
    Task("mul_price", "*", num.mul, (
        "{At} costs {b} dollars. How much do {a} {ts} cost?",
        "{n} buys {a} {ts} for {b} dollars each. How much does {n} pay?",
        "How much do {a} {ts} cost if one {t} costs {b} dollars?",
        "At the {place}, {n} sells {a} {ts} at {b} dollars each. How many dollars does {n} get?",
        "One {t} costs {b} dollars. {n} wants {a} {ts}. How many dollars does {n} need?",
    ), ((
        "There are {a} {ts} for {b} dollars each, so that is {a} * {b} = {z} dollars.",
        "Each of the {a} {ts} costs {b} dollars, which makes {a} * {b} = {z} dollars.",
        "{a} {ts} times {b} dollars make {a} * {b} = {z} dollars.",
    ),), ("So the price of the {ts} is {z} dollars.", "The {ts} cost {z} dollars in all.")),
    Task("mul_per_day", "*", num.mul, (
        "{n} {does} {b} {what} every day. How many {what} is that in {a} days?",
        "Each day {n} {does} {b} {what}. How many {what} does {n} {do} in {a} days?",
        "How many {what} does {n} {do} in {a} days if {he} {does} {b} a day?",
        "For {a} days, {n} {does} {b} {what} a day. How many {what} is that in total?",
        "{n} {does} {b} {what} a day at the {place}. How many {what} does {n} {do} in {a} days?",
    ), ((
        "{n} {does} {b} {what} on each of {a} days, so that is {a} * {b} = {z} {what}.",
        "On each of the {a} days {n} {does} {b} {what}, which makes {a} * {b} = {z} {what}.",
        "{a} days times {b} {what} make {a} * {b} = {z} {what} for {n}.",
    ),), ("So {n} {does} {z} {what} in all.", "That is {z} {what} altogether.")),
    Task("mul_speed", "*", num.mul, (
        "A {mover} goes {b} kilometres in an hour. How far does it go in {a} hours?",
        "A {mover} travels at {b} kilometres per hour for {a} hours. How many kilometres does it travel?",
        "How far does a {mover} get in {a} hours at {b} kilometres per hour?",
        "{n} rides on a {mover} for {a} hours. The {mover} moves at {b} kilometres per hour. What is the distance in kilometres?",
        "At a speed of {b} kilometres per hour, how many kilometres does a {mover} cover in {a} hours?",
    ), ((
        "The {mover} goes {b} kilometres in each of {a} hours, so that is {a} * {b} = {z} kilometres.",
        "In each of the {a} hours the {mover} goes {b} kilometres, which makes {a} * {b} = {z} kilometres.",
        "{a} hours times {b} kilometres make {a} * {b} = {z} kilometres for the {mover}.",
    ),), ("So the {mover} goes {z} kilometres.", "The distance of the {mover} is {z} kilometres.")),
    Task("mul_save", "*", num.mul, (
        "{n} saves {b} dollars every week. How much does {n} save in {a} weeks?",
        "Each week {n} puts {b} dollars in a tin. How many dollars does {n} have after {a} weeks?",
        "How much money does {n} have after {a} weeks of saving {b} dollars a week?",
        "{n} earns {b} dollars a week at the {place}. How many dollars does {n} have after {a} weeks?",
        "{n} wants to buy {at} and saves {b} dollars per week for {a} weeks. How many dollars does {n} save?",
    ), ((
        "{n} <get> {b} dollars in each of {a} weeks, so that is {a} * {b} = {z} dollars.",
        "In each of the {a} weeks {n} <put> away {b} dollars, which makes {a} * {b} = {z} dollars.",
        "{a} weeks times {b} dollars make {a} * {b} = {z} dollars for {n}.",
    ),), ("So {n} <have> {z} dollars in all.", "That is {z} dollars for {n}.")),
    Task("mul_week", "*", num.week, (
        "{n} {does} {a} {what} every day. How many {what} is that in a week?",
        "Each day {n} {does} {a} {what}. How many {what} does {n} {do} in one week?",
        "How many {what} does {n} {do} in a week if {he} {does} {a} a day?",
        "For a whole week, {n} {does} {a} {what} a day. How many {what} is that in total?",
        "{n} {does} {a} {what} a day at the {place}. How many {what} does {n} {do} in a week?",
    ), ((
        "A week has 7 days and {n} {does} {a} {what} a day, so that is 7 * {a} = {z} {what}.",
        "There are 7 days in a week, and with {a} {what} a day {n} <have> 7 * {a} = {z} {what}.",
        "In the 7 days of a week {n} {does} {a} {what} a day, which makes 7 * {a} = {z} {what}.",
    ),), ("So {n} {does} {z} {what} in a week.", "That is {z} {what} in a week.")),
    Task("mul_legs", "*", num.legs, (
        "How many legs do {a} {ts} have?",
        "There are {a} {ts} in a picture. How many legs do the {ts} have in all?",
        "{n} sees {a} {ts} near the {place}. How many legs does {n} see?",
        "{n} draws {a} {ts}. How many legs must {n} draw?",
        "Count the legs of {a} {ts}. How many legs are there?",
        "If {n} has {a} toy {ts}, how many legs do the {ts} have together?",
    ), ((
        "{At} has {b} legs and there are {a} {ts}, so that is {a} * {b} = {z} legs.",
        "Each of the {a} {ts} has {b} legs, which makes {a} * {b} = {z} legs.",
        "One {t} has {b} legs, and {a} {ts} have {a} * {b} = {z} legs.",
    ),), ("So the {ts} have {z} legs in all.", "The {ts} have {z} legs altogether.")),
    Task("mul_area", "*", num.mul, (
        "{Awhole} is {a} metres long and {b} metres wide. What is its area in square metres?",
        "What is the area of a {whole} that is {a} metres by {b} metres?",
        "{n} measures a {whole}. It is {a} metres long and {b} metres wide. How many square metres is the {whole}?",
        "The {whole} of {n} has sides of {a} metres and {b} metres. Work out the area of the {whole}.",
        "How many square metres does {n} need to cover a {whole} of {a} metres by {b} metres?",
    ), ((
        "The area is the length times the width, so that is {a} * {b} = {z} square metres.",
        "The {whole} is {a} metres by {b} metres, which makes {a} * {b} = {z} square metres.",
        "Length times width gives {a} * {b} = {z} square metres for the {whole}.",
    ),), ("So the area of the {whole} is {z} square metres.", "The {whole} has an area of {z} square metres.")),
    Task("div_share", "/", num.div, (
        "{n} shares {a} {ts} equally among {b} {group}. How many {ts} does each get?",
        "{a} {ts} are shared equally by {b} {group}. How many {ts} does each one get?",
        "How many {ts} does each get if {n} divides {a} {ts} equally among {b} {group}?",
        "{b} {group} at the {place} share {a} {ts} equally. How many {ts} are there for each?",
        "{n} has {a} {ts} for {b} {group}. Each gets the same number. How many {ts} does each get?",
    ), ((
        "The {a} {ts} go to {b} {group}, so each gets {a} / {b} = {z} {ts}.",
        "We share {a} {ts} among {b} {group}, which makes {a} / {b} = {z} {ts} each.",
        "{a} {ts} divided by {b} {group} make {a} / {b} = {z} {ts} for each.",
    ),), ("So each one gets {z} {ts}.", "That is {z} {ts} for each one.")),
    Task("div_boxes", "/", num.div, (
        "{n} packs {a} {ts} into {boxes} of {b}. How many {boxes} does {n} need?",
        "Each {box} holds {b} {ts}. How many {boxes} are needed for {a} {ts}?",
        "How many {boxes} can {n} fill with {a} {ts} if each {box} holds {b}?",
        "{n} has {a} {ts} and puts {b} in each {box}. How many {boxes} does {n} fill?",
        "At the {place}, {a} {ts} are put into {boxes} with {b} in each. How many {boxes} are there?",
    ), ((
        "There are {a} {ts} with {b} in each {box}, so that is {a} / {b} = {z} {boxes}.",
        "We put {b} of the {a} {ts} in each {box}, which makes {a} / {b} = {z} {boxes}.",
        "{a} {ts} in {boxes} of {b} make {a} / {b} = {z} {boxes}.",
    ),), ("So {z} {boxes} are needed for the {ts}.", "That is {z} {boxes} for the {ts}.")),
    Task("div_rows", "/", num.div, (
        "{n} puts {a} {seats} in {b} equal rows. How many {seats} are in each row?",
        "{a} {seats} stand in {b} equal rows. How many {seats} are in one row?",
        "How many {seats} are in each row if {n} sets {a} {seats} in {b} equal rows?",
        "At the {place} there are {a} {seats} in {b} rows of the same length. How many {seats} does each row have?",
        "{n} has {a} {seats} for {b} rows. All rows are equal. How many {seats} go in one row?",
    ), ((
        "There are {a} {seats} in {b} rows, so each row has {a} / {b} = {z} {seats}.",
        "We divide {a} {seats} into {b} rows, which makes {a} / {b} = {z} {seats} in each row.",
        "{a} {seats} divided by {b} rows make {a} / {b} = {z} {seats} in a row.",
    ),), ("So each row has {z} {seats}.", "That is {z} {seats} in each row.")),
    Task("div_speed", "/", num.div, (
        "A {mover} goes {b} kilometres in an hour. How many hours does it need for {a} kilometres?",
        "A {mover} travels {a} kilometres at {b} kilometres per hour. How many hours does it take?",
        "How long does a {mover} need for {a} kilometres at {b} kilometres per hour?",
        "{n} rides {a} kilometres on a {mover}. The {mover} moves at {b} kilometres per hour. How many hours does it take?",
        "At a speed of {b} kilometres per hour, how many hours does a {mover} need to cover {a} kilometres?",
    ), ((
        "The {mover} goes {b} of the {a} kilometres each hour, so it needs {a} / {b} = {z} hours.",
        "We divide {a} kilometres by {b} kilometres per hour, which makes {a} / {b} = {z} hours for the {mover}.",
        "For {a} kilometres at {b} an hour, the {mover} needs {a} / {b} = {z} hours.",
    ),), ("So the {mover} needs {z} hours.", "The time of the {mover} is {z} hours.")),
    Task("div_weeks", "/", num.div, (
        "{n} saves {b} dollars a week. How many weeks does {n} need to save {a} dollars?",
        "{At} costs {a} dollars. {n} saves {b} dollars each week. After how many weeks can {n} buy it?",
        "How many weeks does it take {n} to save {a} dollars with {b} dollars a week?",
        "{n} wants to save {a} dollars and puts away {b} dollars per week. How many weeks does {n} need?",
        "Every week {n} earns {b} dollars at the {place}. In how many weeks does {n} earn {a} dollars?",
    ), ((
        "{n} <get> {b} dollars a week and <want> {a} dollars, so that is {a} / {b} = {z} weeks.",
        "We divide {a} dollars by {b} dollars a week, which makes {a} / {b} = {z} weeks for {n}.",
        "For {a} dollars at {b} dollars a week, {n} <need> {a} / {b} = {z} weeks.",
    ),), ("So {n} <need> {z} weeks.", "That is {z} weeks for {n}.")),
    Task("half", "/", num.half, (
        "{n} has {a} {ts} and gives half of them to {m}. How many {ts} does {m} get?",
        "Half of the {a} {ts} of {n} go to {m}. How many {ts} does {m} get?",
        "How many {ts} does {m} have if {n} has {a} and {m} has half as many?",
        "{n} finds {a} {ts} at the {place}. {m} finds half as many as {n}. How many {ts} does {m} find?",
        "There are {a} {ts}. {n} takes one half and {m} takes the other half. How many {ts} does {m} take?",
    ), ((
        "Half means that we divide by 2, so {m} has {a} / 2 = {z} {ts}.",
        "To find half of {a} {ts} we divide by 2, which makes {a} / 2 = {z} {ts} for {m}.",
        "Half of {a} {ts} is {a} divided by 2, and {a} / 2 = {z} {ts} for {m}.",
    ),), ("So {m} has {z} {ts}.", "That makes {z} {ts} for {m}.")),
    Task("double", "+", num.twice, (
        "{n} has {a} {ts}. {m} has twice as many. How many {ts} does {m} have?",
        "{m} has double the number of {ts} that {n} has. {n} has {a}. How many {ts} does {m} have?",
        "How many {ts} does {m} have if {n} has {a} and {m} has twice as many?",
        "{n} finds {a} {ts} at the {place}. {m} finds double that number. How many {ts} does {m} find?",
        "If {n} has {a} {ts} and {m} has two times as many as {n}, how many {ts} does {m} have?",
    ), ((
        "Twice as many means {a} and {a} again, so {m} has {a} + {a} = {z} {ts}.",
        "To double {a} {ts} we add {a} again, which makes {a} + {a} = {z} {ts} for {m}.",
        "Double of {a} {ts} is {a} and {a}, and {a} + {a} = {z} {ts} for {m}.",
    ),), ("So {m} has {z} {ts}.", "That makes {z} {ts} for {m}.")),
)
