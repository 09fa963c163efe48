"""Rounds along recorded answers whose drafts several sources make together, id by id, at given prices.

Each source sees only what was written before. A draft grows while the next id is expected to bring more than
its row costs. While a draft is right its text is the answer's, so what the drafter says there was recorded;
behind a wrong id the drafter goes on with its own recorded chain, or with guesses as sure as its usual ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lab.sources.answer_rows import CHAIN
from lab.sources.beliefs import UNKNOWN, Beliefs, Place
from lab.sources.given_answers import Answer, Costs, Sums, leading
from lab.sources.memories import Look, Memory, Written
from omnidemo.decoding.cost_model import READING

NEVER, ALWAYS = 0.0, 1.01  # chances of memory below which the drafter is asked
CAUTION = 1.2  # times that a further id has to bring what its price brings elsewhere
USUAL = 0.6  # chance of an id for which the drafter was asked, where nothing is known
FADE = 0.98  # of older rounds, in the worth of a price


@dataclass(frozen=True, slots=True)
class Way:
    """Which sources draft. `memories`: by name, the makers of those that begin empty with a set; `ask`: the
    chance of memory's best id below which the drafter is asked as well; `mixed`: the likeliest id is that of
    a mixture of what all say, not the likeliest of a single source; `fresh`: memories are emptied before each
    answer."""

    memories: Mapping[str, Callable[[], Memory]] = field(default_factory=dict)
    ask: float = ALWAYS
    mixed: bool = False
    fresh: bool = False


class Fused:
    """The rounds of one set's answers, one after the other, in one way."""

    def __init__(self, way: Way, costs: Costs) -> None:
        self.way, self.costs = way, costs
        self.tokens = self.price = 8.0  # of the newest rounds
        self.usual, self.later = USUAL, USUAL  # chances of ids for which the drafter was asked
        self.beliefs = Beliefs(way.mixed, self._prior)
        self._memories()

    def renew(self) -> None:
        """Forget what was written, and keep a little of how often sources are right."""
        self._memories()
        self.tokens = self.price = 8.0
        self.beliefs.renew()

    def _memories(self) -> None:
        self.memories = [(name, make()) for name, make in self.way.memories.items()]

    def answer(self, given: Answer) -> Sums:
        if self.way.fresh:
            self._memories()
        for _, memory in self.memories:
            memory.begin(given.prompt)
        text, at, sums, self.read = list(given.prompt), 0, Sums(), 0
        while at < len(given.ids):
            places, count, spent = self._draft(given, text, at)
            accepted = leading([one.token for one in places[:count]], given.ids[at:])
            kept = min(accepted + 1, len(given.ids) - at)
            self._judge(places, given.ids[at : at + kept])
            price = self.costs.rows[1 + count] + spent * self.costs.step
            self._count(sums, kept, price, spent, count)
            begin = len(text)
            text += given.ids[at : at + kept]
            for _, memory in self.memories:
                memory.learn(text, Written(begin, given.rows[at : at + kept]))
            at += kept
        for _, memory in self.memories:
            memory.end(given.prompt, given.ids)
        return sums

    def agreed(self, given: Answer) -> float:
        """Σ min(p, q) over the positions of an answer, each reached by a plain round."""
        whole, text = 0.0, list(given.prompt)
        for _, memory in self.memories:
            memory.begin(given.prompt)
        for at, (token, row) in enumerate(zip(given.ids, given.rows, strict=True)):
            place = self._from_memory(text)
            if self.way.ask:
                found, sure, _ = self._asked(given, (at, 0))
                place = self._with_drafter(place, found, sure, given, (at, 0))
            said = place.probs or (place.looks[0][1].probs if self.memories and place.looks else {})
            said = said if self.memories else given.guesses[at]
            whole += sum(min(p, said.get(one, 0.0)) for one, p in row)
            self._judge([place], [token])
            text.append(token)
            for _, memory in self.memories:
                memory.learn(text, Written(len(text) - 1, [row]))
        for _, memory in self.memories:
            memory.end(given.prompt, given.ids)
        return whole

    def _count(self, sums: Sums, kept: int, price: float, spent: float, count: int) -> None:
        sums.tokens, sums.rounds, sums.price = sums.tokens + kept, sums.rounds + 1, sums.price + price
        sums.steps, sums.proposed = sums.steps + spent, sums.proposed + count
        self.tokens, self.price = FADE * self.tokens + kept, FADE * self.price + price

    @property
    def worth(self) -> float:
        """Tokens that a price of one pass brings elsewhere."""
        return CAUTION * max(1.0, self.tokens / self.price)

    def _draft(self, given: Answer, text: list[int], at: int) -> tuple[list[Place], int, float]:
        """(the places of a draft, how many of them are proposed, drafter tokens) of the round that begins at
        an id of the answer."""
        begin, places, spent, chance, worth = len(text), list[Place](), 0.0, 1.0, self.worth
        own: tuple[int, int] | None = (at, 0)  # where the drafter's chain is read
        right, asked = True, False  # whether all ids are right
        rows, step = self.costs.rows, self.costs.step
        while len(places) < self.costs.longest and not (right and at + len(places) >= len(given.ids)):
            depth = len(places)
            row = rows[depth + 2] - rows[depth + 1]
            place = self._from_memory(text, depth > 0)
            if place.chance < self.way.ask:
                unread = max(0, at + depth - self.read - 1)
                price = step * (1.0 + READING * unread)
                hope = max(place.chance, self.later if depth else self.usual / max(0.1, 1 - self.later))
                if chance * hope > worth * (row + price):
                    found, sure, steps = self._asked(given, own)
                    spent += steps + READING * unread
                    self.read, asked = at + depth, True
                    place = self._with_drafter(place, found, sure, given, own, depth > 0)
                    self._expect(depth, place.chance, 0.02)
                else:  # a drafter is never given up for good
                    self._expect(depth, USUAL, 0.005)
            if chance * place.chance <= worth * row:
                places.append(place)
                break
            chance *= place.chance
            places.append(place)
            text.append(place.token)
            own = self._next(given, own, place.token, right, at + depth)
            right = right and place.token == given.ids[at + depth]
            if place.token in given.ends:
                break
        del text[begin:]
        if asked:
            self.read = min(self.read, at + leading([one.token for one in places], given.ids[at:]))
        return places, self._best([one.chance for one in places], worth), spent

    def _expect(self, depth: int, chance: float, rate: float) -> None:
        if depth:
            self.later += rate * (chance - self.later)
        else:
            self.usual += rate * (chance - self.usual)

    def _best(self, chances: Sequence[float], worth: float) -> int:
        """How many ids bring the most beyond what their rows cost."""
        best, most, total, chance = 0, 0.0, 0.0, 1.0
        for count, one in enumerate(chances, 1):
            chance *= one
            total += chance - worth * (self.costs.rows[count + 1] - self.costs.rows[count])
            if total > most:
                best, most = count, total
        return best

    @staticmethod
    def _next(
        given: Answer, own: tuple[int, int] | None, token: int, right: bool, position: int
    ) -> tuple[int, int] | None:
        """Where what the drafter says after a further id of the draft was recorded."""
        if right and token == given.ids[position]:
            return position + 1, 0
        if own is None:
            return None
        base, depth = own
        drafts = depth < CHAIN - 1 and given.chain[base][depth] == token
        return (base, depth + 1) if drafts else None

    def _asked(self, given: Answer, own: tuple[int, int] | None) -> tuple[int, float, float]:
        """(the drafter's id, its probability, drafter tokens)."""
        if own is None or own[0] >= len(given.ids):
            return UNKNOWN, self.later, 1.0
        base, depth = own
        token = given.chain[base][depth]
        if token < 0:
            return UNKNOWN, 0.0, 1.0
        return token, given.chances[base][depth], float(given.steps[base][depth])

    def _from_memory(self, text: Sequence[int], later: bool = False) -> Place:
        looks = [(number, memory.look(text)) for number, (_, memory) in enumerate(self.memories)]
        return self.beliefs.place([one for one in looks if one[1].probs], later, False)

    def _with_drafter(
        self, place: Place, token: int, sure: float, given: Answer, own: tuple[int, int] | None,
        later: bool = False,
    ) -> Place:  # fmt: skip
        """What is taken where the drafter has been asked too."""
        if token == UNKNOWN:
            return place if place.token != UNKNOWN else replace(place, chance=sure)
        known = self.way.mixed and own is not None and own[1] == 0
        look = Look(0, given.guesses[own[0]] if known and own is not None else {token: sure})
        return self.beliefs.place([*place.looks, (len(self.memories), look)], later, True)

    def _prior(self, source: int, kind: int) -> float | None:
        return self.memories[source][1].prior(kind) if source < len(self.memories) else None

    def _judge(self, places: Sequence[Place], ids: Sequence[int]) -> None:
        """Learn from the places whose text was right."""
        for place, wanted in zip(places, ids, strict=False):
            self.beliefs.judge(place, wanted)
            if place.token != wanted:
                break
