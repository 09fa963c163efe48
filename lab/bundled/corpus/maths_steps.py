"""The texts of the maths tasks with several steps, and of the bare sums."""

from __future__ import annotations

from . import maths_numbers as num
from .maths_texts import Task

MORE_STEPS: tuple[Task, ...] = (
    Task("boxes_give", "*-", num.mul_sub, (
        "{n} buys {a} {boxes} of {b} {ts}. {He} gives {c} {ts} to {m}. How many {ts} does {n} have left?",
        "There are {a} {boxes} with {b} {ts} in each. {n} gives {c} {ts} to {m}. How many {ts} are left?",
        "How many {ts} does {n} have left if {he} has {a} {boxes} of {b} {ts} and gives {c} {ts} to {m}?",
        "{n} takes {a} {boxes} to the {place}. Each {box} has {b} {ts}. {n} gives away {c} {ts} to {m}. How many {ts} remain?",
        "Each {box} holds {b} {ts} and {n} has {a} {boxes}. {m} takes {c} {ts}. How many {ts} does {n} still have?",
    ), ((
        "{n} <have> {a} {boxes} of {b} {ts}, so that is {a} * {b} = {r} {ts}.",
        "The {a} {boxes} of {n} have {b} {ts} each, which makes {a} * {b} = {r} {ts}.",
    ), (
        "Then {c} {ts} go to {m}, so {r} - {c} = {z} are left.",
        "Then {m} gets {c} {ts}, which leaves {r} - {c} = {z} {ts}.",
    )), ("So {n} <have> {z} {ts} left.", "That leaves {z} {ts} for {n}.")),
    Task("boxes_more", "*+", num.mul_add, (
        "{n} has {a} {boxes} of {b} {ts} and {c} more {ts} on the table. How many {ts} does {n} have?",
        "There are {a} {boxes} with {b} {ts} in each. {m} brings {n} {c} more {ts}. How many {ts} does {n} have now?",
        "How many {ts} does {n} have if {he} has {a} {boxes} of {b} {ts} and {c} loose {ts}?",
        "{n} fills {a} {boxes} with {b} {ts} each and has {c} {ts} left over. How many {ts} did {n} have in all?",
        "At the {place}, {n} finds {a} {boxes} of {b} {ts} and {c} single {ts}. How many {ts} does {n} find?",
    ), ((
        "{n} <have> {a} {boxes} of {b} {ts}, so that is {a} * {b} = {r} {ts}.",
        "The {a} {boxes} of {n} have {b} {ts} each, which makes {a} * {b} = {r} {ts}.",
    ), (
        "Then {c} more {ts} come, so there are {r} + {c} = {z} {ts}.",
        "Then we add {c} {ts}, which makes {r} + {c} = {z} {ts}.",
    )), ("So {n} <have> {z} {ts} in all.", "That makes {z} {ts} for {n}.")),
    Task("change_many", "*-", num.sub_mul, (
        "{n} buys {a} {ts} for {b} dollars each and pays with {c} dollars. How much change does {n} get?",
        "{n} has {c} dollars. {He} buys {a} {ts} at {b} dollars each. How many dollars are left?",
        "How much money does {n} have left from {c} dollars after buying {a} {ts} for {b} dollars each?",
        "One {t} costs {b} dollars. {n} takes {a} {ts} and pays {c} dollars. How many dollars does {n} get back?",
        "{n} goes to the {place} with {c} dollars and buys {a} {ts} for {b} dollars each. How many dollars does {n} have now?",
    ), ((
        "The {a} {ts} cost {b} dollars each, so that is {a} * {b} = {r} dollars.",
        "{n} <pay> {b} dollars for each of {a} {ts}, which makes {a} * {b} = {r} dollars.",
    ), (
        "Then we take that from {c} dollars, so {c} - {r} = {z} dollars are left.",
        "Then {n} <have> {c} dollars minus the price, which leaves {c} - {r} = {z} dollars.",
    )), ("So {n} <have> {z} dollars left.", "That leaves {z} dollars for {n}.")),
    Task("find_give", "+-", num.add_sub, (
        "{n} has {a} {ts} and finds {b} more. Then {he} gives {c} to {m}. How many {ts} does {n} have left?",
        "{n} had {a} {ts}, got {b} more and gave {c} to {m}. How many {ts} does {n} have now?",
        "How many {ts} does {n} have if {he} starts with {a}, gets {b} more and gives {c} to {m}?",
        "At the {place}, {n} buys {a} {ts} and then {b} more. {m} gets {c} of them. How many {ts} does {n} keep?",
        "{n} has {a} {ts}. {He} collects {b} and hands {c} to {m}. How many {ts} are left for {n}?",
    ), ((
        "{n} <start> with {a} {ts} and {b} more come, so that is {a} + {b} = {r} {ts}.",
        "There are {a} {ts} first and then {b} more, which makes {a} + {b} = {r} {ts}.",
    ), (
        "Then {c} {ts} go to {m}, so {r} - {c} = {z} are left.",
        "Then {m} gets {c} {ts}, which leaves {r} - {c} = {z} {ts}.",
    )), ("So {n} <have> {z} {ts} left.", "That leaves {z} {ts} for {n}.")),
    Task("give_find", "-+", num.sub_add, (
        "{n} has {a} {ts} and gives {b} to {m}. Then {he} finds {c} more. How many {ts} does {n} have now?",
        "{n} had {a} {ts}, gave {b} to {m} and got {c} new ones. How many {ts} does {n} have?",
        "How many {ts} does {n} have if {he} starts with {a}, gives {b} to {m} and then gets {c} more?",
        "At the {place}, {n} hands {b} of {his} {a} {ts} to {m} and buys {c} more. How many {ts} does {n} have after that?",
        "From {a} {ts}, {n} gives {b} to {m}. Later {n} collects {c} more {ts}. How many {ts} does {n} have in the end?",
    ), ((
        "{n} <give> {b} of the {a} {ts} to {m}, so {a} - {b} = {r} {ts} are left.",
        "{n} <start> with {a} {ts} and {m} gets {b}, which leaves {a} - {b} = {r} {ts}.",
    ), (
        "Then {c} more {ts} come, so there are {r} + {c} = {z} {ts}.",
        "Then we add {c} {ts}, which makes {r} + {c} = {z} {ts}.",
    )), ("So {n} <have> {z} {ts} now.", "That makes {z} {ts} for {n}.")),
    Task("give_two", "--", num.sub_sub, (
        "{n} has {a} {ts}. {He} gives {b} to {m} and {c} to {k}. How many {ts} does {n} have left?",
        "From {a} {ts}, {n} gives {b} to {m} and then {c} to {k}. How many {ts} are left?",
        "How many {ts} does {n} keep if {he} has {a}, gives {b} to {m} and gives {c} to {k}?",
        "At the {place}, {n} has {a} {ts}. {m} takes {b} and {k} takes {c}. How many {ts} remain?",
        "{m} gets {b} {ts} and {k} gets {c} from {n}, who had {a} {ts}. How many {ts} does {n} still have?",
    ), ((
        "{n} <give> {b} of the {a} {ts} to {m}, so {a} - {b} = {r} {ts} are left.",
        "{n} <start> with {a} {ts} and {m} gets {b}, which leaves {a} - {b} = {r} {ts}.",
    ), (
        "Then {c} {ts} go to {k}, so {r} - {c} = {z} are left.",
        "Then {k} gets {c} {ts}, which leaves {r} - {c} = {z} {ts}.",
    )), ("So {n} <have> {z} {ts} left.", "That leaves {z} {ts} for {n}.")),
    Task("spend_two", "--", num.sub_sub, (
        "{n} has {a} dollars. {He} buys {at} for {b} dollars and {au} for {c} dollars. How many dollars are left?",
        "From {a} dollars, {n} spends {b} on {at} and {c} on {au}. How much money does {n} have left?",
        "How much money is left from {a} dollars if {n} pays {b} dollars for {at} and {c} dollars for {au}?",
        "{n} takes {a} dollars to the {place}, pays {b} dollars for {at} and then {c} dollars for {au}. How many dollars remain?",
        "{At} costs {b} dollars and {au} costs {c} dollars. {n} has {a} dollars and buys both. How many dollars does {n} keep?",
    ), ((
        "{n} <pay> {b} of the {a} dollars for the {t}, so {a} - {b} = {r} dollars are left.",
        "{n} <start> with {a} dollars and the {t} costs {b}, which leaves {a} - {b} = {r} dollars.",
    ), (
        "Then {n} <pay> {c} dollars for the {u}, so {r} - {c} = {z} dollars are left.",
        "Then the {u} costs {c} dollars, which leaves {r} - {c} = {z} dollars.",
    )), ("So {n} <have> {z} dollars left.", "That leaves {z} dollars for {n}.")),
    Task("join_share", "+/", num.add_div, (
        "{n} has {a} {ts} and {m} has {b}. They share them equally among {c} {group}. How many {ts} does each get?",
        "{n} puts {a} {ts} and {m} puts {b} {ts} in one {box}. {c} {group} share them equally. How many {ts} does each get?",
        "How many {ts} does each of {c} {group} get if {n} brings {a}, {m} brings {b} and all are shared equally?",
        "At the {place}, {n} finds {a} {ts} and {m} finds {b}. All {ts} are shared by {c} {group}. How many does each get?",
        "{c} {group} share the {ts} of {n} and {m}. {n} has {a} {ts} and {m} has {b}. How many {ts} are there for each?",
    ), ((
        "{n} <have> {a} {ts} and {m} has {b}, so together that is {a} + {b} = {r} {ts}.",
        "With {a} {ts} from {n} and {b} from {m}, the total is {a} + {b} = {r} {ts}.",
    ), (
        "Then {c} {group} share them, so each gets {r} / {c} = {z} {ts}.",
        "Then we divide by {c} {group}, which makes {r} / {c} = {z} {ts} each.",
    )), ("So each one gets {z} {ts}.", "That is {z} {ts} for each one.")),
    Task("keep_share", "-/", num.sub_div, (
        "{n} has {a} {ts}. {He} keeps {b} and shares the rest equally among {c} {group}. How many {ts} does each get?",
        "{n} takes {b} {ts} out of {a}. The rest are shared equally by {c} {group}. How many {ts} does each one get?",
        "How many {ts} does each of {c} {group} get if {n} keeps {b} of {a} {ts} and shares the rest?",
        "At the {place}, {n} keeps {b} of {a} {ts}. {c} {group} share the other {ts} equally. How many does each get?",
        "There are {a} {ts}. {n} keeps {b}, and {c} {group} get equal shares of the rest. How many {ts} are in each share?",
    ), ((
        "{n} <keep> {b} of the {a} {ts}, so {a} - {b} = {r} {ts} are left.",
        "From {a} {ts} {n} <take> {b}, which leaves {a} - {b} = {r} {ts}.",
    ), (
        "Then {c} {group} share them, so each gets {r} / {c} = {z} {ts}.",
        "Then we divide by {c} {group}, which makes {r} / {c} = {z} {ts} each.",
    )), ("So each one gets {z} {ts}.", "That is {z} {ts} for each one.")),
    Task("three_days", "++", num.add_add, (
        "{n} {does} {a} {what} on Monday, {b} on Tuesday and {c} on Wednesday. How many {what} is that in all?",
        "On three days {n} {does} {a}, {b} and {c} {what}. How many {what} does {n} {do} altogether?",
        "How many {what} does {n} {do} in total if {he} {does} {a} on Friday, {b} on Saturday and {c} on Sunday?",
        "At the {place}, {n} {does} {a} {what} in the morning, {b} at noon and {c} in the evening. What is the total number of {what}?",
        "First {n} {does} {a} {what}, then {b} and at last {c}. How many {what} does {n} {do} in all?",
    ), ((
        "First {n} {does} {a} {what} and then {b}, so that is {a} + {b} = {r} {what}.",
        "We put the first {a} and the next {b} {what} together, which makes {a} + {b} = {r} {what}.",
    ), (
        "Then {c} more {what} come, so there are {r} + {c} = {z} {what}.",
        "Then we add {c} {what}, which makes {r} + {c} = {z} {what}.",
    )), ("So {n} {does} {z} {what} in all.", "That is {z} {what} for {n}.")),
    Task("three_rounds", "++", num.add_add, (
        "{n} scores {a}, {b} and {c} points in three rounds of {game}. What is the total score of {n}?",
        "In {game}, {n} gets {a} points, then {b} points and then {c} points. How many points does {n} have?",
        "What is the final score of {n} in {game} after rounds of {a}, {b} and {c} points?",
        "{n} wins {a} points in round one of {game}, {b} in round two and {c} in round three. How many points does {n} have?",
        "Three rounds of {game} give {n} {a}, {b} and {c} points. How many points are there in all for {n}?",
    ), ((
        "The first two rounds give {n} {a} + {b} = {r} points.",
        "{n} <have> {a} points and {b} points first, so that is {a} + {b} = {r} points.",
    ), (
        "Then {c} more points come, so there are {r} + {c} = {z} points.",
        "Then we add {c} points, which makes {r} + {c} = {z} points.",
    )), ("So the score of {n} is {z} points.", "That makes {z} points for {n}.")),
    Task("unit_price", "/*", num.div_mul, (
        "{b} {ts} cost {a} dollars. How much do {c} {ts} cost?",
        "{n} pays {a} dollars for {b} {ts}. How much would {c} {ts} cost?",
        "How much do {c} {ts} cost if {b} {ts} cost {a} dollars?",
        "At the {place}, {b} {ts} cost {a} dollars. {n} wants {c} {ts}. How many dollars does {n} pay?",
        "The price of {b} {ts} is {a} dollars. What is the price of {c} {ts} in dollars?",
    ), ((
        "The {b} {ts} cost {a} dollars, so one costs {a} / {b} = {r} dollars.",
        "We divide {a} dollars by {b} {ts}, which makes {a} / {b} = {r} dollars for one.",
    ), (
        "Then {c} {ts} cost {c} * {r} = {z} dollars.",
        "Then we take {c} {ts}, which makes {c} * {r} = {z} dollars.",
    )), ("So the price of {c} {ts} is {z} dollars.", "The {c} {ts} cost {z} dollars.")),
    Task("recipe", "/*", num.div_mul, (
        "A recipe for {dish} uses {a} {food} for {b} people. How many {food} are needed for {c} people?",
        "{n} cooks {dish} for {b} people with {a} {food}. How many {food} does {n} need for {c} people?",
        "How many {food} are needed in {dish} for {c} people if {b} people need {a}?",
        "For {b} people {n} puts {a} {food} in the {dish}. {n} now cooks for {c} people. How many {food} does {n} need?",
        "{dish1} for {b} people takes {a} {food}. {n} has {c} guests. How many {food} go in {dish} for {c} people?",
    ), ((
        "The {a} {food} are for {b} people, so one person needs {a} / {b} = {r} {food}.",
        "We divide {a} {food} by {b} people, which makes {a} / {b} = {r} {food} for one person.",
    ), (
        "Then {c} people need {c} * {r} = {z} {food}.",
        "Then we cook for {c} people, which makes {c} * {r} = {z} {food}.",
    )), ("So the {dish} needs {z} {food}.", "That is {z} {food} for the {dish}.")),
    Task("save_goal", "-/", num.sub_div, (
        "{At} costs {a} dollars. {n} has {b} dollars and saves {c} dollars a week. How many weeks does {n} need?",
        "{n} needs {a} dollars, has {b} dollars and saves {c} dollars each week. In how many weeks does {n} have enough?",
        "How many weeks does {n} need to get {a} dollars if {he} has {b} dollars and saves {c} dollars a week?",
        "{n} wants to buy {at} for {a} dollars. {He} has {b} dollars and earns {c} dollars a week. How many weeks must {n} wait?",
        "With {b} dollars in the tin, {n} saves {c} dollars per week until there are {a} dollars. How many weeks does {n} need?",
    ), ((
        "{n} <have> {b} of {a} dollars, so {a} - {b} = {r} dollars are missing.",
        "From {a} dollars we take the {b} that {n} <have>, which leaves {a} - {b} = {r} dollars.",
    ), (
        "Then {n} <save> {c} dollars a week, so that is {r} / {c} = {z} weeks.",
        "Then we divide by {c} dollars a week, which makes {r} / {c} = {z} weeks.",
    )), ("So {n} <need> {z} weeks.", "That is {z} weeks for {n}.")),
    Task("more_total", "++", num.more_total, (
        "{n} has {a} {ts}. {m} has {b} more than {n}. How many {ts} do they have together?",
        "{m} has {b} more {ts} than {n}, who has {a}. How many {ts} do both have in all?",
        "How many {ts} do {n} and {m} have together if {n} has {a} and {m} has {b} more than {n}?",
        "At the {place}, {n} finds {a} {ts} and {m} finds {b} more than {n}. How many {ts} do {n} and {m} find together?",
        "If {n} has {a} {ts} and {m} has {b} more than {n}, what is the total number of {ts} together?",
    ), ((
        "{m} has {b} more {ts} than {n}, so {m} has {a} + {b} = {r} {ts}.",
        "{n} <have> {a} {ts} and {m} has {b} more, which makes {a} + {b} = {r} {ts} for {m}.",
    ), (
        "Then we add the {a} {ts} of {n}, so together that is {a} + {r} = {z} {ts}.",
        "Then {n} and {m} together have {a} + {r} = {z} {ts}.",
    )), ("So {n} and {m} have {z} {ts} together.", "Together, {n} and {m} have {z} {ts}.")),
    Task("fewer_total", "-+", num.fewer_total, (
        "{n} has {a} {ts}. {m} has {b} fewer than {n}. How many {ts} do they have together?",
        "{m} has {b} fewer {ts} than {n}, who has {a}. How many {ts} do both have in all?",
        "How many {ts} do {n} and {m} have together if {n} has {a} and {m} has {b} fewer than {n}?",
        "At the {place}, {n} finds {a} {ts} and {m} finds {b} fewer than {n}. How many {ts} do {n} and {m} find together?",
        "If {n} has {a} {ts} and {m} has {b} fewer than {n}, what is the total number of {ts} together?",
    ), ((
        "{m} has {b} fewer {ts} than {n}, so {m} has {a} - {b} = {r} {ts}.",
        "{n} <have> {a} {ts} and {m} has {b} fewer, which makes {a} - {b} = {r} {ts} for {m}.",
    ), (
        "Then we add the {a} {ts} of {n}, so together that is {a} + {r} = {z} {ts}.",
        "Then {n} and {m} together have {a} + {r} = {z} {ts}.",
    )), ("So {n} and {m} have {z} {ts} together.", "Together, {n} and {m} have {z} {ts}.")),
    Task("twice_total", "++", num.twice_total, (
        "{n} has {a} {ts}. {m} has twice as many. How many {ts} do they have together?",
        "{m} has double the number of {ts} that {n} has. {n} has {a}. How many {ts} do both have in all?",
        "How many {ts} do {n} and {m} have together if {n} has {a} and {m} has twice as many?",
        "At the {place}, {n} finds {a} {ts} and {m} finds double that number. How many {ts} do {n} and {m} find together?",
        "If {n} has {a} {ts} and {m} has twice as many as {n}, what is the total number of {ts} together?",
    ), ((
        "Twice as many means {a} and {a} again, so {m} has {a} + {a} = {r} {ts}.",
        "To double {a} {ts} we add {a} again, which makes {a} + {a} = {r} {ts} for {m}.",
    ), (
        "Then we add the {a} {ts} of {n}, so together that is {a} + {r} = {z} {ts}.",
        "Then {n} and {m} together have {a} + {r} = {z} {ts}.",
    )), ("So {n} and {m} have {z} {ts} together.", "Together, {n} and {m} have {z} {ts}.")),
    Task("half_more", "/+", num.half_add, (
        "{n} has {a} {ts} and gives half of them to {m}. Then {n} gets {b} new {ts}. How many {ts} does {n} have now?",
        "{n} gives half of {his} {a} {ts} to {m} and then finds {b} more. How many {ts} does {n} have?",
        "How many {ts} does {n} have if {he} gives half of {a} {ts} to {m} and then buys {b} more?",
        "At the {place}, {n} hands half of {his} {a} {ts} to {m}. Later {n} collects {b} more {ts}. How many {ts} does {n} have?",
        "Half of the {a} {ts} of {n} go to {m}. After that, {n} gets {b} more {ts}. How many {ts} does {n} have?",
    ), ((
        "Half means that we divide by 2, so after {m} gets half, {n} <have> {a} / 2 = {r} {ts}.",
        "{m} gets half of the {a} {ts}, which leaves {n} the other half of {a} / 2 = {r} {ts}.",
    ), (
        "Then {b} more {ts} come, so there are {r} + {b} = {z} {ts}.",
        "Then we add {b} {ts}, which makes {r} + {b} = {z} {ts}.",
    )), ("So {n} <have> {z} {ts} now.", "That makes {z} {ts} for {n}.")),
    Task("warm_cold", "+-", num.rise_fall, (
        "In {town} it is {a} degrees. It gets {b} degrees warmer and then {c} degrees colder. What is the temperature now?",
        "The temperature in {town} is {a} degrees. It rises by {b} degrees and later falls by {c} degrees. What is it in the end?",
        "How warm is it in {town} if it was {a} degrees, went up by {b} degrees and then down by {c} degrees?",
        "{n} reads {a} degrees in {town}. It gets {b} degrees warmer by noon and {c} degrees colder at night. How many degrees is it?",
        "At dawn it is {a} degrees in {town}. By noon it is {b} degrees warmer, and then it drops by {c} degrees. How many degrees is it?",
    ), ((
        "It was {a} degrees in {town} and it got {b} degrees warmer, so it was {a} + {b} = {r} degrees.",
        "The temperature in {town} went up by {b} from {a}, which makes {a} + {b} = {r} degrees.",
    ), (
        "Then it got {c} degrees colder, so it is {r} - {c} = {z} degrees.",
        "Then it fell by {c} degrees, which makes {r} - {c} = {z} degrees.",
    )), ("So it is {z} degrees in {town}.", "The temperature in {town} is {z} degrees.")),
    Task("bus", "-+", num.sub_add, (
        "There are {a} people on a {ride}. In {town}, {b} people get off and {c} people get on. How many people are on the {ride} now?",
        "A {ride} has {a} people on it. {b} get off in {town} and {c} get on. How many people does the {ride} carry now?",
        "How many people are on a {ride} if {a} were on it, {b} got off in {town} and {c} got on?",
        "{n} counts {a} people on a {ride}. In {town}, {b} leave and {c} come in. How many people are on the {ride} after that?",
        "A {ride} comes to {town} with {a} people. {b} people leave it and {c} new people come. How many people are on the {ride}?",
    ), ((
        "In {town} {b} of the {a} people get off the {ride}, so {a} - {b} = {r} people are left.",
        "The {ride} comes to {town} with {a} people and {b} get off, which leaves {a} - {b} = {r} people.",
    ), (
        "Then {c} people get on, so there are {r} + {c} = {z} people.",
        "Then we add {c} people, which makes {r} + {c} = {z} people.",
    )), ("So there are {z} people on the {ride}.", "That makes {z} people on the {ride}.")),
    Task("left_over", "*-", num.sub_mul, (
        "{n} has {c} {ts}. {He} fills {a} {boxes} with {b} {ts} each. How many {ts} are left over?",
        "Each {box} holds {b} {ts}. {n} has {c} {ts} and fills {a} {boxes}. How many {ts} does {n} have left over?",
        "How many {ts} are left over if {n} has {c} and fills {a} {boxes} with {b} in each?",
        "At the {place}, {n} packs {a} {boxes} of {b} {ts} from a pile of {c} {ts}. How many {ts} are not packed?",
        "From {c} {ts}, {n} puts {b} in each of {a} {boxes}. How many {ts} remain outside the {boxes}?",
    ), ((
        "{n} <fill> {a} {boxes} with {b} {ts} each, so that is {a} * {b} = {r} {ts}.",
        "In the {a} {boxes} of {n} there are {b} {ts} each, which makes {a} * {b} = {r} {ts}.",
    ), (
        "Then we take that from {c} {ts}, so {c} - {r} = {z} are left.",
        "Then {n} <have> {c} {ts} minus the packed ones, which leaves {c} - {r} = {z} {ts}.",
    )), ("So {z} {ts} are left over.", "That leaves {z} {ts}.")),
    Task("perimeter", "++", num.perimeter, (
        "A {whole} is a rectangle of {a} metres by {b} metres. What is the perimeter?",
        "What is the perimeter of a {whole} that is {a} metres long and {b} metres wide?",
        "{n} walks once around a {whole} that is {a} metres long and {b} metres wide. How many metres does {n} walk?",
        "The {whole} of {n} is {a} metres long and {b} metres wide. How long is the edge around the {whole}, in metres?",
        "{n} puts a rope around a {whole} of {a} metres by {b} metres. How many metres of rope does {n} need?",
    ), ((
        "One long side and one short side of the {whole} make {a} + {b} = {r} metres.",
        "The {whole} is {a} metres long and {b} metres wide, and that is {a} + {b} = {r} metres for half the way round.",
    ), (
        "Then the other two sides are the same, so that is {r} + {r} = {z} metres.",
        "Then we double it for all four sides, which makes {r} + {r} = {z} metres.",
    )), ("So the way around the {whole} is {z} metres.", "The perimeter of the {whole} is {z} metres.")),
    Task("share_give", "/-", num.div_sub, (
        (
            "{n} and some friends, {b} people in all, share {a} {ts} equally. {n} gives {c} of {his} share to {m}. "
            "How many {ts} does {n} have left?"
        ),
        "{a} {ts} are shared equally among {b} people. {n} is one of them and gives {c} to {m}. How many {ts} does {n} keep?",
        "How many {ts} does {n} keep if {b} people share {a} {ts} equally and {n} gives {c} of {his} share to {m}?",
        "At the {place}, {b} people share {a} {ts} equally. {n} hands {c} of {his} {ts} to {m}. How many {ts} does {n} have?",
        "{b} people get equal shares of {a} {ts}. From {his} share, {n} gives {c} to {m}. How many {ts} does {n} have left?",
    ), ((
        "The {a} {ts} go to {b} people, so {n} <get> {a} / {b} = {r} {ts}.",
        "We share {a} {ts} among {b} people, which makes {a} / {b} = {r} {ts} for {n}.",
    ), (
        "Then {c} {ts} go to {m}, so {r} - {c} = {z} are left.",
        "Then {m} gets {c} {ts}, which leaves {r} - {c} = {z} {ts}.",
    )), ("So {n} <have> {z} {ts} left.", "That leaves {z} {ts} for {n}."), "food"),
    Task("two_purchases", "**+", num.two_groups, (
        "{n} buys {a} {ts} for {b} dollars each and {c} {us} for {d} dollars each. How much does {n} pay in all?",
        "{At} costs {b} dollars and {au} costs {d} dollars. How much do {a} {ts} and {c} {us} cost together?",
        "How many dollars does {n} pay for {a} {ts} at {b} dollars each and {c} {us} at {d} dollars each?",
        "At the {place}, {n} takes {a} {ts} for {b} dollars each and {c} {us} for {d} dollars each. What is the total price?",
        "One {t} costs {b} dollars and one {u} costs {d} dollars. {n} wants {a} {ts} and {c} {us}. How many dollars does {n} need?",
    ), ((
        "The {a} {ts} cost {b} dollars each, so that is {a} * {b} = {r} dollars.",
        "For {a} {ts} at {b} dollars each the price is {a} * {b} = {r} dollars.",
    ), (
        "The {c} {us} cost {d} dollars each, so that is {c} * {d} = {s} dollars.",
        "For {c} {us} at {d} dollars each the price is {c} * {d} = {s} dollars.",
    ), (
        "Together that is {r} + {s} = {z} dollars.",
        "Both prices together make {r} + {s} = {z} dollars.",
    )), ("So the {ts} and the {us} cost {z} dollars.", "The price of the {ts} and the {us} is {z} dollars.")),
    Task("two_boxes", "**+", num.two_groups, (
        "{n} has {a} {boxes} of {b} {ts} and {c} {boxes} of {d} {us}. How many things does {n} have in all?",
        "There are {a} {boxes} with {b} {ts} each and {c} {boxes} with {d} {us} each. How many things are there?",
        "How many things are in {a} {boxes} of {b} {ts} and {c} {boxes} of {d} {us}?",
        "At the {place}, {n} carries {a} {boxes} of {b} {ts} and {c} {boxes} of {d} {us}. How many things does {n} carry?",
        "{n} packs {a} {boxes} with {b} {ts} each and {c} {boxes} with {d} {us} each. How many things does {n} pack?",
    ), ((
        "There are {a} {boxes} of {b} {ts}, so that is {a} * {b} = {r} {ts}.",
        "The first {a} {boxes} have {b} {ts} each, which makes {a} * {b} = {r} {ts}.",
    ), (
        "There are {c} {boxes} of {d} {us}, so that is {c} * {d} = {s} {us}.",
        "The other {c} {boxes} have {d} {us} each, which makes {c} * {d} = {s} {us}.",
    ), (
        "Together that is {r} + {s} = {z} things.",
        "The {ts} and the {us} together make {r} + {s} = {z} things.",
    )), ("So there are {z} things in all.", "That is {z} things altogether.")),
    Task("change_two", "*+-", num.groups_change, (
        "{n} buys {a} {ts} for {b} dollars each and {au} for {c} dollars. {He} pays with {d} dollars. How much change does {n} get?",
        "{n} has {d} dollars. {He} buys {a} {ts} at {b} dollars each and {au} at {c} dollars. How many dollars are left?",
        "How much money is left from {d} dollars if {n} buys {a} {ts} for {b} dollars each and {au} for {c} dollars?",
        "At the {place}, {n} pays {d} dollars for {a} {ts} at {b} dollars each and {au} at {c} dollars. How many dollars come back?",
        (
            "One {t} costs {b} dollars and {au} costs {c} dollars. {n} has {d} dollars and takes {a} {ts} and one {u}. "
            "How many dollars remain?"
        ),
    ), ((
        "The {a} {ts} cost {b} dollars each, so that is {a} * {b} = {r} dollars.",
        "For {a} {ts} at {b} dollars each the price is {a} * {b} = {r} dollars.",
    ), (
        "Then the {u} costs {c} dollars, so the total is {r} + {c} = {s} dollars.",
        "With {c} dollars for the {u} the total is {r} + {c} = {s} dollars.",
    ), (
        "Then we take that from {d} dollars, so {d} - {s} = {z} dollars are left.",
        "Then {n} <have> {d} dollars minus the price, which leaves {d} - {s} = {z} dollars.",
    )), ("So {n} <have> {z} dollars left.", "That leaves {z} dollars for {n}.")),
    Task("legs_two", "**+", num.legs_two, (
        "There are {a} {ts} and {b} {us} in a picture. How many legs do the {ts} and the {us} have together?",
        "How many legs do {a} {ts} and {b} {us} have in all?",
        "{n} sees {a} {ts} and {b} {us} near the {place}. How many legs does {n} see?",
        "{n} draws {a} {ts} and {b} {us}. How many legs must {n} draw for the {ts} and the {us}?",
        "Count the legs of {a} {ts} and {b} {us}. How many legs are there?",
    ), ((
        "Each of the {a} {ts} has 4 legs, so that is {a} * 4 = {r} legs.",
        "{At} has 4 legs, and {a} {ts} have {a} * 4 = {r} legs.",
    ), (
        "Each of the {b} {us} has 2 legs, so that is {b} * 2 = {s} legs.",
        "{Au} has 2 legs, and {b} {us} have {b} * 2 = {s} legs.",
    ), (
        "Together that is {r} + {s} = {z} legs.",
        "The {ts} and the {us} together have {r} + {s} = {z} legs.",
    )), ("So there are {z} legs in all.", "That is {z} legs altogether.")),
    Task("give_share", "*-/", num.groups_share, (
        "{n} has {a} {boxes} of {b} {ts}. {He} keeps {c} {ts} and shares the rest equally among {d} {group}. How many {ts} does each get?",
        (
            "There are {a} {boxes} with {b} {ts} each. {n} takes {c} {ts}, and {d} {group} share the rest equally. "
            "How many {ts} does each get?"
        ),
        "How many {ts} does each of {d} {group} get if {n} has {a} {boxes} of {b} {ts}, keeps {c} {ts} and shares the rest?",
        (
            "At the {place}, {n} opens {a} {boxes} of {b} {ts} and keeps {c} {ts}. {d} {group} share the others equally. "
            "How many does each get?"
        ),
        "Each {box} holds {b} {ts} and {n} has {a} {boxes}. {n} keeps {c} {ts}. {d} {group} share the rest. How many {ts} does each get?",
    ), ((
        "{n} <have> {a} {boxes} of {b} {ts}, so that is {a} * {b} = {r} {ts}.",
        "The {a} {boxes} of {n} have {b} {ts} each, which makes {a} * {b} = {r} {ts}.",
    ), (
        "Then {n} <keep> {c} {ts}, so {r} - {c} = {s} are left.",
        "Then {c} {ts} stay with {n}, which leaves {r} - {c} = {s} {ts}.",
    ), (
        "Then {d} {group} share them, so each gets {s} / {d} = {z} {ts}.",
        "Then we divide by {d} {group}, which makes {s} / {d} = {z} {ts} each.",
    )), ("So each one gets {z} {ts}.", "That is {z} {ts} for each one.")),
    Task("more_give", "*+-", num.groups_both, (
        "{n} has {a} {boxes} of {b} {ts} and {c} loose {ts}. {He} gives {d} {ts} to {m}. How many {ts} does {n} have left?",
        "{n} buys {a} {boxes} of {b} {ts}, finds {c} more {ts} and gives {d} {ts} to {m}. How many {ts} does {n} have now?",
        "How many {ts} does {n} keep if {he} has {a} {boxes} of {b} {ts} and {c} more {ts} and gives {d} {ts} to {m}?",
        "At the {place}, {n} gets {a} {boxes} of {b} {ts} and {c} single {ts}. {m} takes {d} of the {ts}. How many {ts} are left for {n}?",
        "Each {box} holds {b} {ts}. {n} has {a} {boxes} and {c} more {ts}. {m} gets {d} {ts}. How many {ts} does {n} still have?",
    ), ((
        "{n} <have> {a} {boxes} of {b} {ts}, so that is {a} * {b} = {r} {ts}.",
        "The {a} {boxes} of {n} have {b} {ts} each, which makes {a} * {b} = {r} {ts}.",
    ), (
        "Then {c} more {ts} come, so there are {r} + {c} = {s} {ts}.",
        "Then we add {c} {ts}, which makes {r} + {c} = {s} {ts}.",
    ), (
        "Then {d} {ts} go to {m}, so {s} - {d} = {z} are left.",
        "Then {m} gets {d} {ts}, which leaves {s} - {d} = {z} {ts}.",
    )), ("So {n} <have> {z} {ts} left.", "That leaves {z} {ts} for {n}.")),
)

_END = ("So the answer is {z}.", "The answer is {z}.")

BARE: tuple[Task, ...] = (
    Task("bare_add", "+", num.bare_add, (
        "What is {a} + {b}?", "{a} + {b} = ?", "Work out {a} + {b}.", "What is {a} plus {b}?", "Add {a} and {b}.",
        "How much is {a} plus {b}?", "{a} + {b}", "What is the sum of {a} and {b}?", "Calculate {a} + {b}.",
        "What do you get when you add {b} to {a}?",
    ), (("We add {a} and {b}, and {a} + {b} = {z}.", "The sum of {a} and {b} is {a} + {b} = {z}."),), _END),
    Task("bare_sub", "-", num.bare_sub, (
        "What is {a} - {b}?", "{a} - {b} = ?", "Work out {a} - {b}.", "What is {a} minus {b}?", "Subtract {b} from {a}.",
        "How much is {a} minus {b}?", "{a} - {b}", "What is {a} take away {b}?", "Calculate {a} - {b}.",
        "What is the difference of {a} and {b}?",
    ), (("We take {b} from {a}, and {a} - {b} = {z}.", "From {a} we subtract {b}, so {a} - {b} = {z}."),), _END),
    Task("bare_mul", "*", num.bare_mul, (
        "What is {a} * {b}?", "{a} * {b} = ?", "Work out {a} * {b}.", "What is {a} times {b}?", "Multiply {a} by {b}.",
        "How much is {a} times {b}?", "{a} x {b}", "What is the product of {a} and {b}?", "Calculate {a} x {b}.",
        "What is {a} multiplied by {b}?",
    ), (("We multiply {a} by {b}, and {a} * {b} = {z}.", "The product of {a} and {b} is {a} * {b} = {z}."),), _END),
    Task("bare_div", "/", num.bare_div, (
        "What is {a} / {b}?", "{a} / {b} = ?", "Work out {a} / {b}.", "What is {a} divided by {b}?", "Divide {a} by {b}.",
        "How much is {a} divided by {b}?", "{a} / {b}", "How many times does {b} go into {a}?", "Calculate {a} / {b}.",
        "What do you get when you divide {a} by {b}?",
    ), (("We divide {a} by {b}, and {a} / {b} = {z}.", "{a} divided by {b} is {a} / {b} = {z}."),), _END),
    Task("bare_missing", "-", num.sub, (
        "What number plus {b} makes {a}?", "{b} + ? = {a}", "Which number do you add to {b} to get {a}?",
        "What is missing in {b} + ... = {a}?",
        "I add {b} to a number and get {a}. What is the number?",
    ), (("We take {b} from {a}, and {a} - {b} = {z}.", "From {a} we subtract {b}, so {a} - {b} = {z}."),), _END),
    Task("bare_twice", "+", num.twice, (
        "What is double {a}?", "What is twice {a}?", "Double the number {a}.", "How much is two times {a}?",
        "What do you get when you double {a}?",
    ), (("To double a number we add it to itself, and {a} + {a} = {z}.", "Double {a} is {a} and {a} again, so {a} + {a} = {z}."),), _END),
    Task("bare_half", "/", num.half, (
        "What is half of {a}?", "Halve the number {a}.", "How much is one half of {a}?", "What do you get when you halve {a}?",
        "What is a half of {a}?",
    ), (("To find half we divide by 2, and {a} / 2 = {z}.", "Half of {a} is {a} divided by 2, so {a} / 2 = {z}."),), _END),
    Task("bare_three", "++", num.add_add, (
        "What is {a} + {b} + {c}?", "{a} + {b} + {c} = ?", "Add {a}, {b} and {c}.", "Work out {a} plus {b} plus {c}.",
        "What is the sum of {a}, {b} and {c}?",
        "Calculate {a} + {b} + {c}.",
    ), (("First we add, and {a} + {b} = {r}.",), ("Then we add {c}, and {r} + {c} = {z}.",)), _END),
    Task("bare_add_sub", "+-", num.add_sub, (
        "What is {a} + {b} - {c}?", "{a} + {b} - {c} = ?", "Add {a} and {b} and then subtract {c}.", "Work out {a} plus {b} minus {c}.",
        "Calculate {a} + {b} - {c}.", "How much is {a} plus {b} take away {c}?",
    ), (("First we add, and {a} + {b} = {r}.",), ("Then we subtract {c}, and {r} - {c} = {z}.",)), _END),
    Task("bare_mul_add", "*+", num.mul_add, (
        "What is {a} * {b} + {c}?", "{a} * {b} + {c} = ?", "Multiply {a} by {b} and then add {c}.", "Work out {a} times {b} plus {c}.",
        "Calculate {a} x {b} + {c}.", "How much is {a} times {b} plus {c}?",
    ), (("First we multiply, and {a} * {b} = {r}.",), ("Then we add {c}, and {r} + {c} = {z}.",)), _END),
    Task("bare_mul_sub", "*-", num.mul_sub, (
        "What is {a} * {b} - {c}?", "{a} * {b} - {c} = ?", "Multiply {a} by {b} and then subtract {c}.",
        "Work out {a} times {b} minus {c}.",
        "Calculate {a} x {b} - {c}.", "How much is {a} times {b} minus {c}?",
    ), (("First we multiply, and {a} * {b} = {r}.",), ("Then we subtract {c}, and {r} - {c} = {z}.",)), _END),
)
