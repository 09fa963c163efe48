"""Word tables of the maths domain: small things to count, containers, games, animals with legs, vehicles, foods to cook."""

from __future__ import annotations

# Small enough to be counted, given away and put in boxes by the dozen.
SMALL: tuple[str, ...] = tuple("""
acorn|badge|ball|balloon|band|bead|bell|block|bolt|book|bookmark|bottle top|bow|bracelet|brick|brush|button|candle|card|chain|
chalk stick|charm|clip|coaster|coin|comic|cork|counter|crayon|crystal|cup|doll|drawing|envelope|eraser|feather|
flag|flower|folder|fossil|gem|glove|hair clip|hat|hook|jewel|key|key ring|kite|label|ladle|lamp|lantern|leaf|letter|magnet|
map|marble|marker|mask|medal|mug|napkin|needle|notebook|nut|paintbrush|pearl|pebble|peg|pen|pencil|photo|picture|pin|
pine cone|plate|pompom|postcard|poster|pot|puppet|puzzle|puzzle piece|ribbon|ring|robot|rock|rose|ruler|
sack|saucer|scarf|screw|seed|shell|shirt|shoelace|sock|spinning top|sponge|spoon|stamp|star|sticker|stone|straw|string|sweet|tag|
tennis ball|ticket|tile|token|toy|toy car|toy boat|toy train|tulip|umbrella|vase|wheel|whistle|wooden block|yo-yo
""".replace("\n", "").split("|"))

SWEET_FOODS: tuple[str, ...] = (
    "apple", "apricot", "bagel", "banana", "biscuit", "bread roll", "bun", "candy", "carrot", "cherry", "chestnut", "chocolate", "cookie",
    "cracker", "cupcake", "date", "doughnut", "dumpling", "fig", "grape", "hazelnut", "lemon", "lime", "lollipop", "mango", "meatball",
    "mint", "muffin", "olive", "orange", "pancake", "pastry", "peach", "peanut", "pear", "pickle", "pie", "plum", "potato",
    "pretzel", "radish", "raisin", "raspberry", "sandwich", "scone", "strawberry", "tart", "tomato", "toffee", "waffle", "walnut",
)

# (singular, plural)
CONTAINERS: tuple[tuple[str, str], ...] = (
    ("box", "boxes"), ("bag", "bags"), ("basket", "baskets"), ("tray", "trays"), ("jar", "jars"), ("crate", "crates"),
    ("packet", "packets"),
    ("tin", "tins"), ("bucket", "buckets"), ("bowl", "bowls"), ("carton", "cartons"), ("case", "cases"), ("pouch", "pouches"),
    ("drawer", "drawers"), ("pack", "packs"), ("sack", "sacks"), ("chest", "chests"), ("tub", "tubs"),
)

GAMES: tuple[str, ...] = (
    "darts", "bowling", "basketball", "archery", "skittles", "pinball", "the quiz", "the card game", "the board game", "the ring toss",
    "the spelling game", "the maths game", "the word game", "the dice game", "the video game", "mini golf", "the marble game", "handball",
)

# (singular, plural, legs)
ANIMALS: tuple[tuple[str, str, int], ...] = (
    ("dog", "dogs", 4), ("cat", "cats", 4), ("cow", "cows", 4), ("horse", "horses", 4), ("goat", "goats", 4), ("rabbit", "rabbits", 4),
    ("lion", "lions", 4), ("fox", "foxes", 4), ("pig", "pigs", 4), ("zebra", "zebras", 4), ("hen", "hens", 2), ("duck", "ducks", 2),
    ("parrot", "parrots", 2), ("owl", "owls", 2), ("swan", "swans", 2), ("crow", "crows", 2), ("ant", "ants", 6), ("bee", "bees", 6),
    ("beetle", "beetles", 6), ("fly", "flies", 6), ("spider", "spiders", 8), ("ladybird", "ladybirds", 6), ("donkey", "donkeys", 4),
    ("camel", "camels", 4), ("frog", "frogs", 4), ("robin", "robins", 2), ("pigeon", "pigeons", 2), ("crab", "crabs", 10),
)
BEASTS = tuple(row for row in ANIMALS if row[2] == 4)
BIRDS = tuple(row for row in ANIMALS if row[2] == 2)

# Things that move 2 to 12 kilometres in an hour.
MOVERS: tuple[str, ...] = (
    "boat", "canoe", "tractor", "cart", "raft", "ferry", "wagon", "horse cart", "kayak", "sailing boat", "milk float", "barge", "sledge",
    "rowing boat", "donkey cart", "tram", "paddle boat", "carriage", "camel", "pony",
)

WHOLES: tuple[str, ...] = (
    "garden", "field", "park", "yard", "playground", "sandpit", "pool", "farm", "court", "patio", "lawn", "meadow", "courtyard", "car park",
    "schoolyard", "vegetable bed", "paddock", "stage", "terrace", "hall",
)

TASKS: tuple[tuple[str, str], ...] = (
    ("reading", "drawing"), ("swimming", "running"), ("cooking", "cleaning"), ("singing", "dancing"), ("painting", "writing"),
    ("cycling", "walking"), ("digging", "watering"), ("knitting", "sewing"), ("skating", "stretching"), ("baking", "washing up"),
    ("spelling", "counting"), ("climbing", "resting"), ("fishing", "rowing"), ("sweeping", "dusting"), ("skipping", "jumping"),
)

# What a person does some times a day: (verb with s, base verb, plural)
HABITS: tuple[tuple[str, str, str], ...] = (
    ("reads", "read", "pages"), ("writes", "write", "lines"), ("draws", "draw", "pictures"), ("learns", "learn", "words"),
    ("runs", "run", "laps"), ("swims", "swim", "lengths"), ("bakes", "bake", "rolls"), ("plants", "plant", "trees"),
    ("folds", "fold", "paper boats"), ("paints", "paint", "tiles"), ("waters", "water", "plants"), ("sings", "sing", "songs"),
    ("solves", "solve", "puzzles"), ("picks", "pick", "flowers"), ("washes", "wash", "windows"), ("delivers", "deliver", "letters"),
    ("climbs", "climb", "steps"), ("sews", "sew", "buttons"), ("collects", "collect", "eggs"), ("types", "type", "letters"),
    ("knits", "knit", "rows"), ("plays", "play", "tunes"), ("stacks", "stack", "logs"), ("repairs", "repair", "clocks"),
)

DISHES: tuple[str, ...] = (
    "soup", "salad", "stew", "curry", "pasta sauce", "fruit salad", "chilli", "risotto", "lasagne", "jam", "pudding", "porridge",
    "vegetable soup", "rice pudding", "fried rice", "tomato sauce", "goulash", "noodle soup", "bean stew", "potato salad",
)
INGREDIENTS: tuple[str, ...] = (
    "eggs", "carrots", "tomatoes", "onions", "potatoes", "apples", "lemons", "mushrooms", "peppers", "bananas", "spoons of flour",
    "cups of milk", "spoons of sugar", "cups of rice", "spoons of butter", "leeks", "beans", "plums", "olives", "spoons of oil",
)
EVENTS: tuple[str, ...] = (
    "a film", "a lesson", "a match", "a concert", "a train ride", "a bus trip", "a swimming class", "a music lesson", "a walk", "a race",
    "a play", "a meeting", "a puppet show", "a dance class", "a boat trip", "a story hour", "a chess game", "a picnic", "a tour", "a quiz",
)
VEHICLES: tuple[str, ...] = ("bus", "train", "tram", "ferry", "boat", "coach", "cable car", "plane", "school bus", "night bus")
GROUPS: tuple[str, ...] = (
    "friends", "children", "pupils", "cousins", "players", "neighbours", "guests", "scouts", "classmates", "teams", "visitors", "dancers",
)
SEATS: tuple[str, ...] = (
    "chairs", "seats", "desks", "trees", "tiles", "plants", "benches", "bushes", "stools", "tents", "lamps",
    "cabbages", "lettuces", "onion plants", "drums", "pots", "bricks", "candles", "flags", "stamps", "cups",
)
TOPICS: tuple[str, ...] = (
    "whales", "castles", "planets", "robots", "pirates", "dragons", "trains", "horses", "volcanoes", "bees", "knights", "islands", "rivers",
    "stars", "bridges", "cooking", "football", "old ships", "magic", "deserts", "penguins", "music", "kings", "detectives", "forests",
)
