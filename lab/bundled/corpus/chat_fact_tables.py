"""The closed tables behind the everyday facts of the chat domain; every entry is right without exception."""

from __future__ import annotations

from .chat_tables import _list

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December")
MONTH_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh", "twelfth")
NUMBER_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")

# What, of which whole, how many, and the verb of the answer "a spider has eight legs".
HOW_MANY = (
    ("legs", "a spider", "eight", "has"), ("legs", "a dog", "four", "has"), ("legs", "a cat", "four", "has"), ("legs", "a horse", "four",
     "has"),
    ("legs", "an ant", "six", "has"), ("legs", "a bee", "six", "has"), ("legs", "a bird", "two", "has"), ("legs", "a hen", "two", "has"),
    ("legs", "a cow", "four", "has"), ("legs", "a person", "two", "has"), ("legs", "a fly", "six", "has"), ("legs", "a sheep", "four",
     "has"),
    ("legs", "a duck", "two", "has"), ("legs", "an elephant", "four", "has"), ("legs", "a beetle", "six", "has"), ("legs", "a snake", "no",
     "has"),
    ("arms", "an octopus", "eight", "has"), ("legs", "a fish", "no", "has"), ("legs", "a frog", "four", "has"), ("legs", "a mouse", "four",
     "has"),
    ("wheels", "a car", "four", "has"), ("wheels", "a bicycle", "two", "has"), ("wheels", "a tricycle", "three", "has"),
    ("wheels", "a motorbike", "two", "has"), ("wings", "a bird", "two", "has"),
    ("wings", "a butterfly", "four", "has"), ("wings", "a bee", "four", "has"), ("wings", "a fly", "two", "has"), ("eyes", "a person",
     "two", "has"),
    ("ears", "a person", "two", "has"), ("ears", "a rabbit", "two", "has"), ("eyes", "a cat", "two", "has"), ("eyes", "a dog", "two",
     "has"),
    ("fingers", "a hand", "five", "has"), ("toes", "a foot", "five", "has"), ("hands", "a person", "two", "has"), ("feet", "a person",
     "two", "has"),
    ("sides", "a triangle", "three", "has"), ("sides", "a square", "four", "has"), ("corners", "a triangle", "three", "has"),
    ("corners", "a square", "four", "has"), ("corners", "a circle", "no", "has"), ("sides", "a hexagon", "six", "has"),
    ("sides", "a pentagon", "five", "has"), ("sides", "an octagon", "eight", "has"), ("sides", "a rectangle", "four", "has"),
    ("faces", "a cube", "six", "has"), ("edges", "a cube", "twelve", "has"), ("faces", "a die", "six", "has"), ("strings", "a violin",
     "four", "has"),
)  # fmt: skip
# What, in which whole, how many, and the answer.
_HOW_MANY_IN = (
    ("days", "a week", "seven", "A week has seven days"), ("hours", "a day", "24", "A day has 24 hours"),
    ("minutes", "an hour", "60", "An hour has 60 minutes"), ("seconds", "a minute", "60", "A minute has 60 seconds"),
    ("months", "a year", "twelve", "A year has twelve months"), ("seasons", "a year", "four", "A year has four seasons"),
    ("weeks", "a year", "52", "A year has about 52 weeks"), ("days", "a year", "365 days",
     "A year has 365 days, and a leap year has 366 days"),
    ("days", "a leap year", "366", "A leap year has 366 days"), ("years", "a century", "100", "A century has 100 years"),
    ("years", "a decade", "ten", "A decade has ten years"), ("years", "a millennium", "1,000", "A millennium has 1,000 years"),
    ("minutes", "half an hour", "30", "Half an hour has 30 minutes"), ("minutes", "a quarter of an hour", "15",
     "A quarter of an hour has 15 minutes"),
    ("days", "a weekend", "two", "A weekend has two days"), ("letters", "the alphabet", "26", "The alphabet has 26 letters"),
    ("eggs", "a dozen", "twelve", "A dozen is twelve eggs"), ("things", "a pair", "two", "A pair is two things"),
    ("months", "half a year", "six", "Half a year has six months"), ("days", "two weeks", "14", "Two weeks have 14 days"),
    ("hours", "two days", "48", "Two days have 48 hours"), ("centimetres", "a metre", "100", "A metre has 100 centimetres"),
    ("metres", "a kilometre", "1,000", "A kilometre has 1,000 metres"), ("grams", "a kilogram", "1,000", "A kilogram has 1,000 grams"),
    ("millimetres", "a centimetre", "ten", "A centimetre has ten millimetres"), ("cents", "a dollar", "100", "A dollar has 100 cents"),
    ("cents", "a euro", "100", "A euro has 100 cents"), ("pence", "a pound", "100", "A pound has 100 pence"),
    ("millilitres", "a litre", "1,000", "A litre has 1,000 millilitres"), ("players", "a chess game", "two",
     "A chess game has two players"),
    ("squares", "a chess board", "64", "A chess board has 64 squares"), ("colours", "a traffic light", "three",
     "A traffic light has three colours"),
    ("vowels", "the alphabet", "five", "The alphabet has five vowels"), ("halves", "a whole", "two", "A whole has two halves"),
    ("zeros", "a hundred", "two", "A hundred has two zeros"), ("zeros", "a thousand", "three", "A thousand has three zeros"),
    ("zeros", "a million", "six", "A million has six zeros"), ("inches", "a foot", "twelve", "A foot has twelve inches"),
)  # fmt: skip
HOW_MANY_IN = tuple((what, whole, n.removesuffix(" days"), answer) for what, whole, n, answer in _HOW_MANY_IN)

_COLOURED = """
the sky on a clear day: blue, grass: green, snow: white, a banana: yellow, a ripe tomato: red, a strawberry: red, a lemon: yellow
coal: black, milk: white, blood: red, a carrot: orange, an orange: orange, the sea: blue, a frog: green, chocolate: brown
a sunflower: yellow
a leaf in summer: green, a cucumber: green, a polar bear: white, a raven: black, a fire engine: red, a pumpkin: orange, salt: white
sugar: white, a cherry: red, peas: green, cheese: yellow, an elephant: grey, a mouse: grey, a flamingo: pink, a pig: pink, a crow: black
soot: black, gold: yellow, the night sky: black, spinach: green, the yolk of an egg: yellow, a swan: white, broccoli: green, lettuce: green
a cloud: white, the sun: yellow, the sky: blue, coffee: brown, a crocodile: green, a blueberry: blue, butter: yellow, flour: white
cotton: white, an aubergine: purple, a stop sign: red, a raspberry: red, rice: white, a rain cloud: grey, honey: golden, a chick: yellow
a penguin: black and white, a zebra: black and white, a panda: black and white, a piano key: black or white, a ladybird: red and black
"""
THING_COLOURS = tuple((thing, colour.strip()) for thing, colour in (entry.split(":") for entry in _list(_COLOURED)))
OPPOSITES = tuple(
    (x, y)
    for x, y in (
        pair.split("/")
        for pair in _list("""
hot/cold, big/small, tall/short, up/down, left/right, day/night, black/white, open/closed, fast/slow, happy/sad, young/old, rich/poor
full/empty, hard/soft, wet/dry, early/late, loud/quiet, strong/weak, thick/thin, wide/narrow, deep/shallow, heavy/light, high/low
clean/dirty, good/bad, correct/incorrect, true/false, begin/end, push/pull, win/lose, love/hate, buy/sell, come/go, give/take, laugh/cry
inside/outside, above/below, first/last, near/far, hello/goodbye, yes/no, on/off, in/out, front/back, top/bottom, sweet/sour
smooth/rough, brave/cowardly, friend/enemy, war/peace, question/answer, remember/forget, sunny/cloudy, warm/cool, polite/rude
clever/stupid, always/never, more/less, many/few, easy/difficult, summer/winter, boy/girl, man/woman, king/queen, mother/father
beautiful/ugly, cheap/expensive, safe/dangerous, awake/asleep, alive/dead, morning/evening, north/south, east/west, noisy/silent
before/after, sharp/blunt, straight/crooked, tight/loose, kind/cruel, sick/healthy, lucky/unlucky, possible/impossible
arrive/leave, accept/refuse, start/stop, increase/decrease, add/subtract, multiply/divide, maximum/minimum, positive/negative
odd/even, entrance/exit, success/failure, truth/lie, heaven/hell, hero/villain, lend/borrow, float/sink, melt/freeze, rise/fall
""")
    )
)
# An animal, what it says, and the verb for it.
SOUNDS = tuple(
    (animal, says, verb)
    for animal, says, verb in (
        entry.split("/")
        for entry in _list("""
dog/woof/barks, cat/meow/meows, cow/moo/moos, sheep/baa/bleats, duck/quack/quacks, pig/oink/grunts, hen/cluck/clucks
rooster/cock-a-doodle-doo/crows
horse/neigh/neighs, donkey/hee-haw/brays, lion/roar/roars, frog/ribbit/croaks, bee/buzz/buzzes, snake/hiss/hisses, mouse/squeak/squeaks
owl/hoo hoo/hoots, goose/honk/honks, crow/caw/caws, wolf/howl/howls, turkey/gobble/gobbles, bird/tweet/tweets, goat/maa/bleats
cuckoo/cuckoo/calls
tiger/roar/roars, bear/growl/growls, fly/buzz/buzzes, kitten/meow/meows, puppy/woof/barks, lamb/baa/bleats, chick/cheep/cheeps
pigeon/coo/coos
""")
    )
)
PLURALS = tuple(
    (one, many)
    for one, many in (
        entry.split("/")
        for entry in _list("""
child/children, man/men, woman/women, mouse/mice, foot/feet, tooth/teeth, goose/geese, sheep/sheep, fish/fish, leaf/leaves, knife/knives
wife/wives, life/lives, wolf/wolves, half/halves, box/boxes, bus/buses, city/cities, baby/babies, lady/ladies, story/stories, party/parties
potato/potatoes, tomato/tomatoes, hero/heroes, person/people, ox/oxen, deer/deer, dog/dogs, cat/cats, house/houses, car/cars, tree/trees
book/books, apple/apples, bird/birds, cow/cows, pen/pens, day/days, key/keys, boy/boys, girl/girls, toy/toys, church/churches, watch/watches
dish/dishes, glass/glasses, kiss/kisses, fox/foxes, shelf/shelves, loaf/loaves, thief/thieves, country/countries, family/families, fly/flies
berry/berries, penny/pennies, butterfly/butterflies, bush/bushes, bench/benches, peach/peaches, louse/lice, calf/calves, friend/friends
""")
    )
)
RHYMES = tuple(
    tuple(group.split("/"))
    for group in _list("""
cat/hat/mat/bat/rat, dog/frog/log/fog, sun/fun/run/bun, tree/bee/sea/knee/free, house/mouse, star/car/far/jar, moon/spoon/soon
light/night/kite/white
ball/tall/wall/fall/small, king/ring/sing/wing, book/cook/hook/look, cake/lake/snake/make, day/play/say/way/hay, bed/red/head/bread
sky/fly/high/pie
boat/coat/goat/note, rain/train/plane/lane, blue/shoe/two/new, fish/dish/wish, bear/chair/hair/pear, rose/nose/toes, pen/hen/ten/men
hill/mill/pill/still
love/glove/dove, nice/mice/ice/rice, time/lime/rhyme, cold/gold/old/told, door/floor/four, fox/box/socks, duck/truck/luck, name/game/same
heart/art/cart, green/queen/bean, hand/sand/land, bell/well/shell/tell, pig/wig/big/dig, cup/up/pup, bug/mug/hug/rug, money/honey/funny
grow/snow/low
""")
)
YOUNG = tuple(
    (animal, young)
    for animal, young in (
        entry.split("/")
        for entry in _list("""
dog/puppy, cat/kitten, cow/calf, horse/foal, sheep/lamb, pig/piglet, hen/chick, duck/duckling, goose/gosling, goat/kid, deer/fawn, bear/cub
lion/cub, frog/tadpole, swan/cygnet, owl/owlet, kangaroo/joey, seal/pup, butterfly/caterpillar, wolf/cub, fox/cub, tiger/cub, elephant/calf
whale/calf, eagle/eaglet, giraffe/calf, spider/spiderling
""")
    )
)
# From small to big; the steps are wide enough that every animal or thing of a later row is bigger.
BY_SIZE = (
    ("ant", "flea", "grain of sand"), ("bee", "ladybird", "pea"), ("mouse", "egg", "walnut"), ("cat", "rabbit", "hen"), ("wolf", "chair",
     "sheep"),
    ("horse", "cow", "lion"), ("car", "hippo", "rhino"), ("bus", "lorry"), ("house", "church"), ("mountain", "lake"),
)  # fmt: skip
_KINDS = {
    "fruit": "apple, pear, banana, cherry, plum, peach, grape, strawberry, lemon, mango, pineapple, melon, raspberry, kiwi, apricot",
    "vegetable": "carrot, potato, onion, cabbage, leek, beetroot, turnip, radish, parsnip",
    "animal": "dog, cat, horse, cow, pig, sheep, lion, tiger, fox, wolf, bear, rabbit, mouse, monkey, elephant, giraffe, zebra, goat",
    "bird": "robin, sparrow, eagle, owl, duck, swan, penguin, parrot, pigeon, crow, seagull, ostrich, blackbird, stork, goose",
    "insect": "bee, ant, wasp, beetle, butterfly, mosquito, grasshopper, ladybird, moth, cricket",
    "colour": "red, blue, green, yellow, white, black, brown, grey, purple, pink, turquoise",
    "tool": "hammer, saw, screwdriver, drill, spanner, rake, spade, axe, chisel",
    "instrument": "piano, guitar, violin, flute, trumpet, drum, harp, cello, clarinet, trombone",
    "flower": "tulip, daisy, daffodil, sunflower, lily, poppy, snowdrop, buttercup, rose",
    "tree": "oak, birch, pine, willow, maple, beech, poplar",
    "drink": "water, milk, tea, coffee, lemonade, apple juice, cocoa",
    "vehicle": "car, bus, train, bicycle, lorry, tram, motorbike, van, tractor",
    "shape": "circle, square, triangle, rectangle, star, hexagon, oval, pentagon",
    "sport": "football, tennis, rugby, basketball, golf, hockey, cricket, volleyball, handball",
    "language": "English, French, German, Spanish, Italian, Polish, Greek, Chinese, Japanese, Turkish",
    "day of the week": ", ".join(DAYS),
    "month": ", ".join(MONTHS),
}
KINDS_OF = {kind: _list(words) for kind, words in _KINDS.items()}
# These words take no article, and an insect may also be a sport.
MASS = frozenset(_list(", ".join(_KINDS[kind] for kind in ("colour", "drink", "sport", "language", "day of the week", "month")))) - {
    "cricket"
}
MASS |= {"ice", "bread", "cheese", "butter", "paper", "jam", "lemonade", "flour", "wine", "glass", "yoghurt", "toast", "chocolate"}
KINDS_OF["sport"] = tuple(word for word in KINDS_OF["sport"] if word != "cricket")
USES = tuple(
    (thing, use.strip())
    for thing, use in (
        entry.split(":")
        for entry in _list("""
pen: write, knife: cut things, cup: drink, spoon: eat soup, broom: sweep the floor, umbrella: stay dry in the rain, key: open a door
lamp: light a room
bed: sleep, chair: sit, clock: tell the time, hammer: hit nails, saw: cut wood, towel: dry your hands, toothbrush: brush your teeth
comb: comb your hair
book: read, ladder: climb up high, fridge: keep food cold, oven: bake a cake, kettle: boil water, map: find the way, camera: take photos
ruler: measure lengths
needle: sew, rope: tie things together, ball: play, bicycle: ride to places, boat: cross the water, bag: carry things
mirror: look at yourself
pillow: rest your head, blanket: keep warm, stamp: send a letter, torch: see in the dark, scale: weigh things, calendar: look up the date
piano: make music, bucket: carry water, spade: dig a hole, telescope: look at the stars, thermometer: measure the temperature
whistle: make a loud sound
watering can: water the flowers, plate: put food on, sponge: wash the dishes, bell: call people, brush: paint, lock: keep a door shut
candle: make light
""")
    )
)
HOMES = tuple(
    (animal, home.strip())
    for animal, home in (
        entry.split(":")
        for entry in _list("""
fish: in water, bird: in a nest, bee: in a hive, spider: in a web, lion: in the wild, whale: in the sea, shark: in the sea
camel: in the desert
rabbit: in a burrow, cow: on a farm, pig: on a farm, hen: on a farm, squirrel: in the trees, dolphin: in the sea, frog: near water
mole: under the ground
polar bear: in the cold north, penguin: in the cold south, monkey: in the trees, octopus: in the sea, worm: under the ground
crab: by the sea, seal: by the sea
""")
    )
)
EATS = tuple(
    (animal, food.strip())
    for animal, food in (
        entry.split(":")
        for entry in _list("""
cow: grass, horse: grass and hay, rabbit: grass and carrots, lion: meat, sheep: grass, squirrel: nuts, mouse: seeds and cheese, owl: mice
panda: bamboo
goat: grass and leaves, cat: meat and fish, dog: meat and dog food, hen: seeds, giraffe: leaves, spider: insects, frog: insects
shark: fish, seal: fish
wolf: meat, tiger: meat, caterpillar: leaves, swallow: insects, koala: leaves, pelican: fish, penguin: fish, elephant: leaves and grass
deer: grass and leaves
""")
    )
)
ABILITIES = tuple(
    (animal, f"{said} {verb}")
    for animal, said, verb in (
        entry.split("/")
        for entry in _list("""
bird/yes/fly, eagle/yes/fly, bee/yes/fly, butterfly/yes/fly, owl/yes/fly, bat/yes/fly, pig/no/fly, dog/no/fly, horse/no/fly, cow/no/fly
penguin/no/fly
ostrich/no/fly, elephant/no/fly, cat/no/fly, mouse/no/fly, fish/yes/swim, duck/yes/swim, whale/yes/swim, frog/yes/swim, dog/yes/swim
stone/no/swim
penguin/yes/swim, table/no/talk, parrot/yes/talk, stone/no/talk, chair/no/walk, cat/yes/climb, monkey/yes/climb, squirrel/yes/climb
fish/no/climb
kangaroo/yes/jump, frog/yes/jump, horse/yes/run, snail/no/run, tree/no/run, dog/yes/run, fish/no/walk, book/no/eat, car/no/fly, cow/no/climb
""")
    )
)
SEASON_FACTS = (
    ("summer", "winter", "warmer"), ("winter", "summer", "colder"), ("summer", "spring", "warmer"), ("winter", "spring", "colder"),
    ("winter", "autumn", "colder"), ("summer", "autumn", "warmer"),
)  # fmt: skip
# Things with a quality that they have and another that they have not.
QUALITIES = tuple(
    (thing, quality, other)
    for thing, quality, other in (
        entry.split("/")
        for entry in _list("""
ice/cold/hot, fire/hot/cold, snow/cold/hot, the sun/hot/cold, sugar/sweet/sour, a lemon/sour/sweet, honey/sweet/sour, a stone/hard/soft
a pillow/soft/hard
water/wet/dry, the desert/dry/wet, a feather/light/heavy, an elephant/heavy/light, a snail/slow/fast, a cheetah/fast/slow
a giraffe/tall/short
a mouse/small/big, a whale/big/small, the night/dark/bright, the day/bright/dark, a knife/sharp/blunt, a ball/round/square
a needle/thin/thick
steel/hard/soft, butter/soft/hard, a tortoise/slow/fast, a racing car/fast/slow, a lion/wild/tame, an ant/small/big, a mountain/high/low
a library/quiet/loud, thunder/loud/quiet, a wheel/round/square, a coin/round/square, candy/sweet/sour, vinegar/sour/sweet, a tower/high/low
""")
    )
)
MADE_OF = tuple(
    (thing, stuff.strip())
    for thing, stuff in (
        entry.split(":")
        for entry in _list("""
window: glass, bottle of wine: glass, book: paper, newspaper: paper, table: wood, pencil: wood, coin: metal, nail: metal, brick: clay
jumper: wool
snowman: snow, sandcastle: sand, candle: wax, tyre: rubber, omelette: eggs, cheese: milk, butter: milk, bread: flour, jam: fruit and sugar
ring: gold or silver
leather shoe: leather, ice: water, wine: grapes, toast: bread, lemonade: lemons and water, paper: wood, glass: sand, yoghurt: milk
statue: stone or metal
key: metal, spoon: metal or wood, tree house: wood, chocolate: cocoa and sugar, pancake: flour and milk and eggs
""")
    )
)
FUN_FACTS = (
    "a spider has eight legs, but an insect has only six", "a young swan is called a cygnet", "an octopus has eight arms",
    "penguins are birds, but they cannot fly", "ice floats on water", "a leap year has 366 days",
    "February is the shortest month of the year",
    "a cube has six faces and twelve edges", "a young kangaroo is called a joey", "a butterfly begins its life as a caterpillar",
    "a frog begins its life as a tadpole", "two odd numbers always add up to an even number", "glass is made of sand",
    "the word level is the same from both sides", "a chess board has 64 squares",
    "the alphabet has 26 letters, and five of them are vowels",
    "a bat can fly, but it is not a bird", "a whale lives in the sea, but it is not a fish", "a week has 168 hours",
    "a day has 1,440 minutes",
    "paper is made of wood", "the plural of mouse is mice", "an owl sleeps by day and hunts at night", "honey is made by bees",
)  # fmt: skip
SPELLED = _list("""
cat, dog, house, apple, banana, hello, school, friend, water, table, orange, yellow, green, happy, mother, father, garden, summer, winter
elephant
monkey, pencil, flower, window, kitchen, morning, music, story, bread, cheese, chair, train, python, robot, computer, beautiful, tomorrow
because, animal, letter, number, sugar, butter, doctor, teacher, sister, brother, people, family, island, castle, rabbit, tiger, horse
sheep, mouse
""")
