"""Word tables of the `howto` domain: everyday things grouped by the property that decides what to do with them."""

from __future__ import annotations


def _w(text: str) -> tuple[str, ...]:
    return tuple(text.split(", "))


def _pairs(text: str) -> dict[str, str]:
    return dict(part.split(": ", 1) for part in text.split("; "))


# material -> (water, how to wash, how to dry, iron)
MATERIALS: dict[str, tuple[str, str, str, str]] = {
    "wool": ("cold", "by hand with a mild soap", "flat on a towel", "a cool"),
    "cashmere": ("cold", "by hand with a mild soap", "flat on a towel", "a cool"),
    "silk": ("cold", "by hand with a mild soap", "on a hanger in the shade", "a cool"),
    "satin": ("cold", "by hand with a mild soap", "on a hanger in the shade", "a cool"),
    "lace": ("cold", "by hand with a mild soap", "flat on a towel", "a cool"),
    "velvet": ("cold", "by hand with a mild soap", "on a hanger in the shade", "a cool"),
    "cotton": ("hot", "in the machine with normal powder", "on a line in the sun", "a hot"),
    "linen": ("hot", "in the machine with normal powder", "on a line in the sun", "a hot"),
    "flannel": ("warm", "in the machine on a gentle cycle", "on a line in the open air", "a warm"),
    "corduroy": ("warm", "in the machine on a gentle cycle", "on a line in the open air", "a warm"),
    "denim": ("warm", "in the machine on a gentle cycle", "on a line in the open air", "a warm"),
    "polyester": ("warm", "in the machine on a gentle cycle", "on a hanger in the shade", "a cool"),
    "fleece": ("warm", "in the machine on a gentle cycle", "on a line in the open air", "a cool"),
}
GARMENTS = _w(
    "scarf, shirt, jumper, dress, skirt, jacket, blouse, hat, cardigan, coat, waistcoat, shawl, blanket, cushion cover, "
    "tablecloth, curtain, tie, cape, dressing gown, bedspread, tunic, poncho, vest, hood, table runner, bag, apron, cap"
)
CLOTH_COLOURS = _w(
    "red, blue, green, yellow, white, black, grey, brown, pink, purple, orange, cream, navy, beige, striped, checked, "
    "spotted, dark green, light blue, flowery"
)

# surface -> (cloth, cleaner, what to do afterwards, things)
SURFACES: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "wooden": (
        "soft cotton cloth",
        "a little soapy water",
        "Rub in a few drops of oil",
        _w("table, chair, desk, bench, shelf, cupboard, spoon, stool, bed frame, chest, ladder, picture frame, rocking horse"),
    ),
    "glass": (
        "lint-free cloth",
        "water with a little vinegar",
        "Polish it with dry newspaper",
        _w("door, vase, bowl, jar, table top, lamp shade, bottle, jug, window pane, shelf"),
    ),
    "steel": (
        "microfibre cloth",
        "warm water and washing-up liquid",
        "Wipe it dry at once",
        _w("sink, pan, kettle, pot, tray, bucket, ladle, tap, thermos flask, lunch box"),
    ),
    "leather": (
        "soft dry cloth",
        "a little saddle soap",
        "Rub in some leather cream",
        _w("sofa, armchair, bag, belt, suitcase, wallet, saddle, jacket, purse, satchel"),
    ),
    "plastic": (
        "damp sponge",
        "warm water and washing-up liquid",
        "Leave it to dry in the air",
        _w("toy box, watering can, garden chair, bath mat, crate, lunch box, bucket, basin, slide"),
    ),
    "marble": (
        "soft cotton cloth",
        "plain warm water",
        "Wipe it dry at once",
        _w("worktop, floor, statue, chessboard, table top, windowsill, step"),
    ),
    "brass": (
        "soft dry cloth",
        "lemon juice and salt",
        "Polish it until it shines",
        _w("door handle, bell, candlestick, lamp, trumpet, doorknob, plate, key ring"),
    ),
    "copper": ("soft dry cloth", "lemon juice and salt", "Polish it until it shines", _w("pan, kettle, bowl, pot, jug, lantern")),
    "ceramic": (
        "damp sponge",
        "warm water and washing-up liquid",
        "Leave it to dry in the air",
        _w("mug, plate, teapot, tile, bowl, vase, jug, sugar bowl, butter dish"),
    ),
    "bamboo": (
        "soft cotton cloth",
        "a little soapy water",
        "Leave it to dry in the air",
        _w("mat, chair, basket, tray, blind, stool, chopping board"),
    ),
}

# kind -> (place, container, time, first step, bad sign, foods)
FOODS: dict[str, tuple[str, str, str, str, str, tuple[str, ...]]] = {
    "root": (
        "a cool, dark cupboard",
        "a paper bag",
        "three weeks",
        "Brush off the earth, but do not wash anything",
        "soft or green",
        _w("potatoes, onions, shallots, sweet potatoes, yams, garlic bulbs"),
    ),
    "crisp": (
        "the vegetable drawer of the fridge",
        "an open bag",
        "ten days",
        "Cut off the leaves and the stalks",
        "limp or wrinkled",
        _w("carrots, radishes, parsnips, beetroots, turnips, leeks, cucumbers, peppers, courgettes, broccoli, celery"),
    ),
    "leaf": (
        "the fridge",
        "a damp towel",
        "four days",
        "Wash and dry the leaves",
        "brown or slimy",
        _w("lettuce, spinach, rocket, kale, chard, watercress, pak choi, chicory"),
    ),
    "herb": (
        "the fridge",
        "a glass of water",
        "one week",
        "Cut a little off the stems",
        "black or limp",
        _w("basil, parsley, mint, coriander, dill, chervil, tarragon, sage"),
    ),
    "berry": (
        "the fridge",
        "a shallow box",
        "three days",
        "Take out every soft berry",
        "soft or furry",
        _w("strawberries, raspberries, blueberries, blackberries, currants, gooseberries, cherries, grapes"),
    ),
    "fruit": (
        "the vegetable drawer of the fridge",
        "an open bag",
        "three weeks",
        "Take out every bruised fruit",
        "soft or brown",
        _w("apples, pears, oranges, lemons, limes, grapefruits, mandarins, quinces"),
    ),
    "warm": (
        "a shady corner of the kitchen",
        "a fruit bowl",
        "five days",
        "Take off all plastic wrapping",
        "very soft or dark",
        _w("bananas, mangoes, avocados, pineapples, tomatoes, papayas, peaches, plums, apricots, melons"),
    ),
    "dry": (
        "a dry cupboard",
        "an airtight jar",
        "six months",
        "Check that the jar is clean and dry",
        "damp or dusty",
        _w("rice, flour, lentils, oats, sugar, pasta, barley, chickpeas, couscous, dried beans, quinoa, semolina, tea leaves, cocoa"),
    ),
    "nut": (
        "a cool, dry cupboard",
        "an airtight jar",
        "three months",
        "Check that the jar is clean and dry",
        "bitter or oily",
        _w("walnuts, almonds, hazelnuts, peanuts, cashews, sunflower seeds, pumpkin seeds, pistachios, sesame seeds"),
    ),
    "dairy": (
        "the fridge",
        "a closed box",
        "five days",
        "Check the date on the packet",
        "sour or lumpy",
        _w("cream, yogurt, cottage cheese, butter, sour cream, custard, milk"),
    ),
    "cheese": (
        "the fridge",
        "a sheet of waxed paper",
        "three weeks",
        "Cut off any dry edge",
        "furry or sticky",
        _w("hard cheese, goat cheese, blue cheese, smoked cheese, mountain cheese"),
    ),
    "fish": (
        "the coldest shelf of the fridge",
        "a closed box",
        "one day",
        "Pat the surface dry with kitchen paper",
        "slimy or strong in smell",
        _w("fresh salmon, fresh cod, fresh trout, raw chicken, minced beef, fresh tuna, fresh mackerel, raw turkey"),
    ),
    "bread": (
        "a dry bread bin",
        "a cotton bag",
        "three days",
        "Let everything cool down fully",
        "dry or mouldy",
        _w("bread, rolls, bagels, buns, scones, crumpets, baguettes, muffins"),
    ),
    "jam": (
        "a cool, dark cupboard",
        "a closed jar",
        "one year",
        "Check that the lid is tight",
        "cloudy or mouldy",
        _w("honey, jam, marmalade, golden syrup, chutney, pickles"),
    ),
}

# kind -> (light, place, water rhythm, soil, time to wait, plants in the form "how do I grow ...")
PLANTS: dict[str, tuple[str, str, str, str, str, tuple[str, ...]]] = {
    "sun herb": (
        "full sun",
        "a sunny spot",
        "twice a week",
        "light, sandy soil",
        "eight weeks",
        _w("thyme, rosemary, lavender, oregano, sage, marjoram"),
    ),
    "soft herb": (
        "morning sun",
        "a bright spot",
        "every two days",
        "rich, loose soil",
        "six weeks",
        _w("basil, parsley, mint, chives, coriander, dill, lemon balm"),
    ),
    "fruiting": (
        "full sun",
        "a warm, sunny spot",
        "every day",
        "rich soil with compost",
        "three months",
        _w("tomatoes, peppers, chillies, aubergines, courgettes, pumpkins, cucumbers, strawberries, melons, sweetcorn"),
    ),
    "leafy": (
        "half shade",
        "a half-shady spot",
        "every day",
        "rich, loose soil",
        "six weeks",
        _w("lettuce, spinach, rocket, chard, kale, cress, endives"),
    ),
    "root": (
        "full sun",
        "a sunny spot",
        "every two days",
        "loose soil without stones",
        "three months",
        _w("carrots, radishes, beetroots, turnips, parsnips, potatoes, onions"),
    ),
    "climber": (
        "full sun",
        "a sunny spot with a pole",
        "every two days",
        "rich soil with compost",
        "ten weeks",
        _w("peas, runner beans, sweet peas, broad beans, morning glories, nasturtiums"),
    ),
    "flower": (
        "full sun",
        "a sunny spot",
        "every two days",
        "loose garden soil",
        "ten weeks",
        _w("sunflowers, marigolds, zinnias, cornflowers, poppies, cosmos, petunias, dahlias, asters, daisies"),
    ),
    "bulb": (
        "half shade",
        "a half-shady spot",
        "once a week",
        "loose soil with sand",
        "four months",
        _w("tulips, daffodils, crocuses, snowdrops, hyacinths, bluebells"),
    ),
    "shade": (
        "shade",
        "a cool, shady spot",
        "every two days",
        "moist soil with leaf mould",
        "three months",
        _w("ferns, hostas, ivy, mosses, foxgloves, begonias"),
    ),
    "dry": (
        "full sun",
        "a bright, dry spot",
        "every two weeks",
        "sandy soil with grit",
        "one year",
        _w("cacti, aloes, houseleeks, agaves, jade plants"),
    ),
}
GROW_PLACES = _w(
    "on a balcony, in a small garden, in a pot, on a roof terrace, in a wooden box, on a windowsill, in a raised bed, "
    "in an old bucket, behind the house, in a school garden, beside a wall, in a clay pot"
)

# kind of trip -> (clothes, extra 1, extra 2, destinations)
TRIPS: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "sea": (
        "light clothes",
        "a swimsuit",
        "sun cream",
        _w("the coast, the beach, a sunny island, a lake, a seaside village, a fishing harbour"),
    ),
    "hill": (
        "warm clothes",
        "walking boots",
        "a rain jacket",
        _w("the mountains, the hills, a mountain hut, a national park, the forest, the moors"),
    ),
    "city": (
        "smart clothes",
        "comfortable shoes",
        "a city map",
        _w("a big city, the capital, a music festival, a city museum, an old town, a trade fair"),
    ),
    "snow": (
        "thick jumpers",
        "woollen gloves",
        "a warm hat",
        _w("a ski village, the far north, a winter market, an ice festival, a snowy valley"),
    ),
    "farm": (
        "old clothes",
        "rubber boots",
        "a torch",
        _w("a farm, a campsite, a summer camp, a riding school, a vineyard, a cottage in the country"),
    ),
}
BAGS = _w("suitcase, rucksack, travel bag, small backpack, trunk, holdall, sports bag, duffel bag")

# shape -> (first step, wrapping, finish, gifts)
GIFTS: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "flat": (
        "Lay the {g} in the middle of a sheet of paper",
        "Fold the long sides over it and tape them down",
        "Fold the ends into triangles and tape them too",
        _w("book, calendar, puzzle, board game, picture frame, notebook, photo album, chocolate box, sketch pad, jigsaw, diary, atlas"),
    ),
    "soft": (
        "Fold the {g} neatly and lay it on tissue paper",
        "Roll it up in the tissue paper",
        "Put the roll into a gift bag",
        _w("scarf, jumper, blanket, pair of socks, hat, T-shirt, pair of gloves, towel, cushion, shawl, teddy bear, tablecloth"),
    ),
    "round": (
        "Stand the {g} in the middle of a large piece of paper",
        "Pull the paper up on all sides",
        "Twist the paper together above it",
        _w("football, basketball, globe, snow globe, balloon lamp, bowling ball, pot of jam, jar of honey, round cake tin, melon"),
    ),
    "fragile": (
        "Wrap the {g} in two layers of bubble wrap",
        "Put it into a box and fill the gaps with paper",
        "Wrap the box in gift paper",
        _w("vase, teapot, mug, glass bowl, lamp, china plate, clock, porcelain doll, wine glass, music box, jug, candle holder"),
    ),
    "long": (
        "Lay the {g} along the edge of the paper",
        "Roll it up tightly and tape the edge",
        "Twist both ends like a sweet",
        _w("umbrella, poster, bottle of juice, fishing rod, flute, candle, kite, telescope, rolling pin, baseball bat"),
    ),
}

# kind -> (three folding steps, garments)
FOLDS: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "top": (
        "Lay the {g} face down on a flat table",
        "Fold both sleeves to the back",
        "Fold the bottom edge up to the collar",
        _w("shirt, jumper, T-shirt, cardigan, blouse, sweatshirt, pyjama top, pullover, polo shirt"),
    ),
    "square": (
        "Spread the {g} out flat on a bed",
        "Bring the two long edges together",
        "Fold it in half twice more",
        _w("sheet, towel, blanket, tablecloth, bedspread, scarf, shawl, curtain, flag, pillowcase, duvet cover"),
    ),
    "legs": (
        "Hold the {g} by the waist and shake once",
        "Lay one leg flat on top of the other",
        "Fold the legs up in three equal parts",
        _w("pair of jeans, pair of trousers, pair of leggings, pair of shorts, pair of pyjama bottoms, pair of dungarees"),
    ),
}

# kind -> (tool, angle or stroke, test, blades)
BLADES: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "knife": (
        "a wet whetstone",
        "Push the blade over the stone at a low angle ten times on each side",
        "slice a ripe tomato",
        _w("kitchen knife, bread knife, pocket knife, carving knife, paring knife, fish knife, cleaver"),
    ),
    "scissors": (
        "a fine file",
        "Draw the file along the inside edge of each blade ten times",
        "cut a strip of thin cloth",
        _w("pair of scissors, pair of shears, pair of hedge clippers, pair of secateurs"),
    ),
    "garden": (
        "a coarse file",
        "Push the file along the edge in one direction twenty times",
        "cut a thick weed",
        _w("spade, hoe, axe, sickle, scythe, hatchet, lawnmower blade"),
    ),
    "wood": (
        "an oiled stone",
        "Move the flat side in small circles twenty times",
        "shave a thin curl from soft wood",
        _w("chisel, plane blade, gouge, carving tool, drawknife"),
    ),
    "pencil": (
        "a small pencil sharpener",
        "Turn the tip slowly in the sharpener five times",
        "draw a thin line on paper",
        _w("pencil, crayon, eyebrow pencil, charcoal stick, coloured pencil"),
    ),
}

# material -> (preparation, paint, drying time, things)
PAINTS: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "wooden": (
        "Sand the wood until it is smooth",
        "wood paint",
        "one day",
        _w("chair, fence, door, bench, bird house, shelf, table, gate, shed, stool, rocking horse, toy boat, bookcase"),
    ),
    "metal": (
        "Brush off all rust",
        "metal paint",
        "two days",
        _w("gate, railing, bucket, bicycle frame, garden table, letter box, lamp post, radiator, toolbox"),
    ),
    "plaster": ("Fill the holes with filler", "wall paint", "six hours", _w("wall, ceiling, column, arch, garden gnome, mask")),
    "clay": (
        "Wash off all dust and let the clay dry",
        "acrylic paint",
        "three hours",
        _w("pot, bowl, tile, figure, vase, bead, plant pot"),
    ),
    "cardboard": (
        "Wipe off the dust with a dry cloth",
        "poster paint",
        "one hour",
        _w("box, crown, castle, puppet, sign, rocket, lantern"),
    ),
}

PARTIES = {
    "birthday party": ("a cake", "a treasure hunt"),
    "garden party": ("a big salad", "a ball game"),
    "tea party": ("scones and jam", "a quiz"),
    "pizza party": ("homemade pizzas", "a card game"),
    "costume party": ("a bowl of punch", "a costume contest"),
    "picnic": ("sandwiches", "a frisbee game"),
    "barbecue": ("sausages and corn", "a ball game"),
    "pancake party": ("pancakes with syrup", "a board game"),
    "farewell party": ("a cake", "a photo quiz"),
    "housewarming party": ("soup and bread", "a tour of the rooms"),
    "film night": ("popcorn", "a film quiz"),
    "dance party": ("fruit skewers", "a dance contest"),
}
PETS = {
    "dog": "a dog biscuit",
    "puppy": "a dog biscuit",
    "cat": "a bit of chicken",
    "kitten": "a bit of chicken",
    "parrot": "a sunflower seed",
    "budgie": "a bit of millet",
    "pony": "a slice of apple",
    "rabbit": "a bit of carrot",
    "goat": "a slice of apple",
    "rat": "an oat flake",
    "guinea pig": "a bit of cucumber",
    "ferret": "a bit of chicken",
    "hen": "a grain of corn",
    "donkey": "a slice of carrot",
    "pig": "a slice of apple",
}
TRICKS = _w(
    "come when called, step onto a mat, walk on a lead, turn in a circle, go through a hoop, touch my hand, wait at the door, "
    "stand still, jump over a low bar, ring a bell, follow a stick, go into a basket, walk around a cone, climb onto a box, push a ball"
)
# storage place -> (divider, place to sort on)
STORES = {
    "kitchen drawer": "a cutlery tray",
    "desk drawer": "small boxes",
    "bookshelf": "book ends",
    "wardrobe": "hangers",
    "toolbox": "small tins",
    "bathroom cabinet": "small baskets",
    "garage shelf": "plastic crates",
    "toy chest": "cloth bags",
    "sewing box": "small tins",
    "spice rack": "glass jars",
    "shoe cupboard": "shoe racks",
    "pantry": "wire baskets",
    "cellar shelf": "wooden crates",
    "school bag": "pencil cases",
    "fridge": "clear boxes",
    "linen cupboard": "cloth boxes",
    "hall cupboard": "hooks",
    "art cupboard": "paper trays",
    "filing cabinet": "folders",
    "garden shed": "wall hooks",
}
SAVE_FOR = _w(
    "bicycle, guitar, tent, camera, laptop, holiday, telescope, sofa, canoe, piano, skateboard, sewing machine, winter coat, desk, "
    "drum kit, scooter, surfboard, violin, washing machine, microscope, greenhouse, kayak, bookcase, new bed, "
    "coffee machine, tablet, trampoline, rug"
)
REASONS = _w(
    "for mending my roof, for helping my grandmother, for a kind talk, for finding my lost bag, for staying late "
    "last night, for the good advice, "
    "for fixing my bicycle, for teaching my son, for the quick delivery, for carrying my suitcase, for a lovely "
    "evening, for saving my cat, "
    "for the fine meal, for answering all my questions, for the new haircut, for a warm welcome, for painting my "
    "fence, for lending me a ladder"
)
NOTE_JOBS = _w(
    "teacher, doctor, nurse, plumber, baker, gardener, librarian, postman, carpenter, electrician, hairdresser, "
    "vet, dentist, tailor, cook, "
    "bus driver, mechanic, painter, coach, roofer, waiter, pharmacist, firefighter, florist, caretaker, porter, "
    "ranger, pilot, cobbler, shopkeeper"
)

# kind -> (first thing to learn, how to practise, instruments)
INSTRUMENTS: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "strings": (
        "the chords",
        "Change slowly from one chord to the next",
        "plucking the strings",
        _w("guitar, ukulele, banjo, mandolin, lute, harp, bass guitar"),
    ),
    "keys": (
        "the melody with the right hand",
        "Add the left hand when the right hand is sure",
        "pressing the keys",
        _w("piano, organ, keyboard, accordion, harpsichord"),
    ),
    "wind": (
        "where to breathe",
        "Play the long notes with an even breath",
        "blowing into it",
        _w("flute, recorder, clarinet, trumpet, oboe, saxophone, trombone, bagpipe, tuba"),
    ),
    "bow": (
        "the notes on each string",
        "Move the bow slowly and straight",
        "drawing a bow over the strings",
        _w("violin, cello, viola, double bass, fiddle"),
    ),
    "beat": (
        "the beat",
        "Count to four aloud while you play",
        "hitting it",
        _w("drum, xylophone, tambourine, marimba, triangle, bongo, gong, cymbal"),
    ),
}
SONGS = _w(
    "sailor song, lullaby, birthday song, folk song, love song, dance tune, winter carol, marching song, school "
    "song, harvest song, pop song, "
    "hymn, lantern song, old ballad, waltz, children's song"
)

# place to visit -> (what to take, what to see or do, rule)
VISITS = {
    "museum": ("a small notebook", "the main hall", "do not touch anything on show"),
    "zoo": ("a bottle of water", "the feeding times", "do not feed the animals"),
    "castle": ("comfortable shoes", "the old tower", "stay behind the ropes"),
    "aquarium": ("a warm jacket", "the shark tank", "do not knock on the glass"),
    "library": ("your library card", "the reading room", "speak quietly"),
    "theatre": ("your ticket", "the stage from your seat", "switch off your phone"),
    "farm": ("rubber boots", "the young animals", "close every gate"),
    "lighthouse": ("a windproof jacket", "the lamp room", "hold the handrail on the stairs"),
    "cave": ("a torch and a warm jumper", "the largest chamber", "stay with the guide"),
    "market": ("a shopping bag", "the fruit stalls", "ask before you touch the goods"),
    "hospital": ("a small present", "the right ward", "wash your hands at the door"),
    "observatory": ("a warm coat", "the great telescope", "do not use a bright light"),
    "botanical garden": ("a sun hat", "the palm house", "do not pick any flowers"),
    "concert hall": ("your ticket", "the orchestra from your seat", "do not talk during the music"),
    "nature reserve": ("binoculars", "the bird hide", "stay on the path"),
    "swimming pool": ("a towel and a swimsuit", "the shallow pool first", "shower before you swim"),
    "factory": ("closed shoes", "the main machine hall", "wear the helmet you are given"),
    "temple": ("a scarf for your shoulders", "the inner court", "take off your shoes"),
    "art gallery": ("a small notebook", "the largest painting", "do not use a flash"),
    "ice rink": ("thick gloves", "the beginners' corner", "skate in the same direction as the others"),
}
TOWN_TIMES = _w(
    "on Monday, on Tuesday, on Wednesday, on Thursday, on Friday, on Saturday, on Sunday, this weekend, next "
    "week, tomorrow, in the holidays, next month"
)

HEAVY = {
    "piano": "two strong straps and a trolley",
    "wardrobe": "a pair of felt pads",
    "fridge": "a sack truck",
    "sofa": "a pair of felt pads",
    "washing machine": "a sack truck",
    "bookcase": "a pair of felt pads",
    "chest of drawers": "a pair of felt pads",
    "stove": "a sack truck",
    "safe": "a steel trolley",
    "stone bench": "a steel trolley",
    "bed": "a pair of felt pads",
    "workbench": "a steel trolley",
    "oak table": "a pair of felt pads",
    "freezer": "a sack truck",
    "barrel": "a sack truck",
    "plant tub": "a low trolley",
    "aquarium": "a low trolley",
    "statue": "a steel trolley",
    "desk": "a pair of felt pads",
    "dishwasher": "a sack truck",
}
ROOMS = _w(
    "kitchen, bedroom, hall, garage, cellar, attic, study, living room, dining room, workshop, nursery, guest "
    "room, garden, courtyard, spare room"
)

# light -> (set up, light it, put it out)
LIGHTS: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "candle": (
        "Put the {g} on a flat plate that cannot burn",
        "Light the wick with a long match",
        "Put the flame out with a snuffer",
        _w("candle, beeswax candle, tea light, scented candle, birthday candle, pillar candle, floating candle"),
    ),
    "oil": (
        "Fill the {g} with lamp oil and wipe off every drop",
        "Turn the wick up a little and light it with a match",
        "Turn the wick down until the flame dies",
        _w("oil lamp, hurricane lamp, storm lantern, paraffin lamp, ship's lantern"),
    ),
    "gas": (
        "Check that the gas bottle of the {g} is tight",
        "Hold a match to the burner and open the gas slowly",
        "Close the gas tap fully",
        _w("gas lamp, camping lantern, gas stove, camping stove"),
    ),
    "fire": (
        "Build the {g} from dry sticks on a bare, stony place",
        "Light the smallest sticks in the middle with a match",
        "Pour water on it until nothing hisses",
        _w("campfire, bonfire, garden fire, beach fire"),
    ),
}
FIRE_PLACES = _w("in a garden, at a campsite, by the lake, in the yard, on the beach, behind the cabin, at a scout camp")
LIGHT_PLACES = _w(
    "on a porch, in a garden, on a terrace, at a campsite, by the lake, in the yard, on the beach, at a summer "
    "party, behind the cabin, at a scout camp"
)

TEA_LEAVES = {
    "mint": "eight",
    "ginger": "ten",
    "camomile": "five",
    "black tea": "four",
    "green tea": "two",
    "rose hip": "ten",
    "fennel": "eight",
    "lemon balm": "eight",
    "rooibos": "six",
    "white tea": "two",
    "lime blossom": "eight",
    "sage": "five",
    "hibiscus": "seven",
    "nettle": "eight",
}
TEA_EXTRAS = _w("honey, lemon, milk, cinnamon, orange peel, brown sugar, cardamom, vanilla, cloves, apple slices, maple syrup, rose petals")
JUICE = {
    "oranges": "Peel",
    "apples": "Core",
    "carrots": "Peel",
    "pears": "Core",
    "grapes": "Wash",
    "pineapples": "Peel",
    "strawberries": "Hull",
    "cherries": "Stone",
    "peaches": "Stone",
    "mangoes": "Peel",
    "raspberries": "Wash",
    "blueberries": "Wash",
    "grapefruits": "Peel",
    "kiwis": "Peel",
    "plums": "Stone",
    "melons": "Peel",
    "beetroots": "Peel",
    "mandarins": "Peel",
    "apricots": "Stone",
    "limes": "Peel",
}
# vegetable -> minutes in simmering water
VEG = {
    "carrots": 15,
    "potatoes": 20,
    "leeks": 10,
    "peas": 5,
    "beans": 15,
    "pumpkins": 20,
    "parsnips": 20,
    "turnips": 20,
    "courgettes": 10,
    "beetroots": 40,
    "cauliflowers": 10,
    "sweet potatoes": 20,
    "peppers": 10,
    "tomatoes": 10,
    "mushrooms": 10,
    "onions": 15,
    "lentils": 25,
    "chickpeas": 30,
    "cabbages": 15,
    "artichokes": 30,
}
SPICES = _w(
    "pepper, nutmeg, paprika, cumin, curry powder, thyme, parsley, dill, ginger, turmeric, chives, rosemary, coriander, bay leaves, oregano"
)
SPREADS = _w("butter, mustard, cream cheese, hummus, mayonnaise, pesto, peanut butter, olive paste, soft cheese, chutney")
FILLINGS = {
    "cheese": "slices",
    "ham": "slices",
    "cucumber": "slices",
    "tomato": "slices",
    "egg": "slices",
    "tuna": "flakes",
    "salmon": "flakes",
    "lettuce": "leaves",
    "rocket": "leaves",
    "spinach": "leaves",
    "turkey": "slices",
    "avocado": "slices",
    "radish": "slices",
    "banana": "slices",
    "apple": "slices",
    "chicken": "strips",
    "pepper": "strips",
    "carrot": "strips",
    "basil": "leaves",
    "onion": "rings",
}
BREADS = _w("rye bread, white bread, a roll, a bagel, toast, brown bread, a baguette, flat bread, sourdough bread, a bun")
SALADS = _w(
    "cucumber, tomatoes, carrots, peppers, radishes, apples, beetroots, fennel, celery, chickpeas, lentils, "
    "beans, feta cheese, olives, sweetcorn, avocados, pears, "
    "walnuts, red onions, potatoes, oranges, eggs"
)
DRESSINGS = {
    "oil and lemon juice": "lemon",
    "oil and vinegar": "vinegar",
    "yogurt and dill": "dill",
    "oil and mustard": "mustard",
    "cream and chives": "chive",
    "honey and mustard": "honey",
    "yogurt and mint": "mint",
    "oil and lime juice": "lime",
}
# grain -> (cups of water for one cup, minutes)
GRAINS = {
    "rice": (2, 15),
    "brown rice": (2, 35),
    "quinoa": (2, 15),
    "barley": (3, 40),
    "millet": (2, 20),
    "bulgur": (2, 12),
    "buckwheat": (2, 15),
    "polenta": (4, 30),
    "oats": (2, 5),
    "red lentils": (3, 12),
    "green lentils": (3, 25),
    "wild rice": (3, 45),
    "spelt": (3, 40),
    "amaranth": (3, 20),
}

# stain kind -> (first aid, remedy, stains)
STAINS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "fat": (
        "Put flour on the stain and brush it off after ten minutes",
        "a drop of washing-up liquid",
        _w("butter, oil, gravy, mayonnaise, salad dressing, bike grease"),
    ),
    "fruit": (
        "Pour cold water through the stain",
        "a little lemon juice",
        _w("cherry, blackberry, red wine, beetroot, grape juice, tomato sauce, raspberry"),
    ),
    "drink": ("Dab the stain with a clean towel", "a little white vinegar", _w("coffee, tea, cola, cocoa, beer, orange juice")),
    "protein": ("Rinse the stain with cold water only", "a paste of soap and cold water", _w("blood, egg, milk, ice cream, yogurt, sweat")),
    "earth": ("Let the stain dry and brush it off", "a little liquid soap", _w("mud, clay, grass, soot, chalk, potting soil")),
    "wax": (
        "Let the stain harden and scrape it off with a spoon",
        "a little surgical spirit",
        _w("candle wax, crayon, lipstick, shoe polish"),
    ),
}
# damage -> (tools, first, second, things)
REPAIRS: dict[str, tuple[str, str, str, str, tuple[str, ...]]] = {
    "torn": (
        "a needle and strong thread",
        "Lay the two edges of the tear together",
        "Sew small stitches along the tear and tie a knot",
        "Pull gently to test the seam",
        _w("coat, curtain, tent, rucksack, shirt, cushion, sail, pocket, kite, sleeping bag, teddy bear, glove"),
    ),
    "wobbly": (
        "a screwdriver and wood glue",
        "Turn it over and find the loose joint",
        "Put glue into the joint and tighten the screws",
        "Stand it up after one day",
        _w("chair, table, stool, bench, shelf, ladder, bed, desk, bookcase, cot"),
    ),
    "cracked": (
        "strong glue and tape",
        "Clean and dry the crack",
        "Fill the crack with glue and hold it together with tape",
        "Take off the tape after one day",
        _w("vase, mug, plate, teapot, bowl, flowerpot, statue, tile, jug, picture frame"),
    ),
    "squeaky": (
        "a cloth and a drop of oil",
        "Wipe the dust off the moving parts",
        "Put one drop of oil on each moving part",
        "Move it ten times until it is quiet",
        _w("door, gate, wheelbarrow, hinge, bicycle chain, drawer, swing, pram, trolley, window"),
    ),
    "leaking": (
        "a spanner and a new rubber seal",
        "Turn off the water",
        "Open it with the spanner and change the seal",
        "Turn on the water and look for drops",
        _w("tap, shower head, garden hose, water pipe, garden pump, watering can"),
    ),
    "flat": (
        "a patch and rubber glue",
        "Pump it up, hold it under water and find the hole",
        "Dry the place, roughen the rubber and press on the patch with glue",
        "Pump it up again after one hour",
        _w("bicycle tyre, football, air mattress, scooter tyre, rubber boat, wheelbarrow tyre"),
    ),
}
# weather -> (upper clothes, head or hands, feet, warning)
WEATHER = {
    "rainy": ("a waterproof jacket", "a hood", "rubber boots", "take a dry pair of socks"),
    "snowy": ("a thick coat", "a woollen hat", "lined boots", "keep your fingers dry"),
    "windy": ("a windproof jacket", "a tight cap", "firm shoes", "keep away from old trees"),
    "hot": ("a light shirt", "a sun hat", "sandals", "drink a lot of water"),
    "foggy": ("a bright jacket", "a warm cap", "firm shoes", "carry a small light"),
    "frosty": ("a padded jacket", "thick gloves", "warm boots", "walk slowly on ice"),
    "stormy": ("a waterproof coat", "a tight hood", "rubber boots", "stay close to home"),
    "cool": ("a jumper", "a thin scarf", "closed shoes", "take a jacket too"),
    "sunny": ("a light shirt", "a sun hat", "light shoes", "use sun cream"),
    "icy": ("a thick coat", "thick gloves", "boots with good soles", "hold on to a rail"),
}
ACTIVITIES = _w(
    "a walk, a bicycle ride, a football match, a picnic, a market visit, a long hike, a bird walk, a school "
    "trip, a garden party, a boat trip, a fishing trip, "
    "a train journey, a visit to the zoo, a run in the park, a street parade, a day on the farm"
)
FRAGILE = {
    "glasses": "paper",
    "plates": "paper",
    "mugs": "paper",
    "vases": "bubble wrap",
    "lamps": "bubble wrap",
    "mirrors": "blankets",
    "pictures": "blankets",
    "clocks": "towels",
    "bowls": "paper",
    "teapots": "bubble wrap",
    "bottles": "towels",
    "ornaments": "bubble wrap",
    "light bulbs": "bubble wrap",
    "candlesticks": "towels",
    "jars": "paper",
    "records": "cardboard",
    "cameras": "towels",
    "instruments": "blankets",
    "model ships": "bubble wrap",
    "shells": "cotton wool",
}
# wall thing -> (fixing, tool)
WALLS = {
    "picture": ("a nail", "a hammer"),
    "mirror": ("two strong screws", "a drill"),
    "clock": ("a nail", "a hammer"),
    "shelf": ("four strong screws", "a drill"),
    "calendar": ("a nail", "a hammer"),
    "coat rack": ("four strong screws", "a drill"),
    "poster": ("four strips of tape", "a pencil"),
    "tapestry": ("two strong screws", "a drill"),
    "photo frame": ("a nail", "a hammer"),
    "noticeboard": ("two strong screws", "a drill"),
    "map": ("four strips of tape", "a pencil"),
    "wall lamp": ("two strong screws", "a drill"),
    "spice rack": ("two strong screws", "a drill"),
    "key holder": ("a nail", "a hammer"),
    "guitar": ("a padded wall hook", "a drill"),
    "bird house": ("two strong screws", "a drill"),
    "hanging basket": ("a strong hook", "a drill"),
    "paper garland": ("four strips of tape", "a pencil"),
    "child's drawing": ("four strips of tape", "a pencil"),
}
SUBJECTS = {
    "history": "a time line",
    "geography": "a small map",
    "biology": "a drawing with labels",
    "maths": "ten practice sums",
    "French": "a list of words",
    "Spanish": "a list of words",
    "chemistry": "a table of substances",
    "physics": "a page of formulas",
    "music": "a page of notes",
    "grammar": "a list of rules",
    "spelling": "a list of words",
    "Latin": "a list of words",
    "art": "a page of sketches",
    "road safety": "a set of sign cards",
    "first aid": "a list of steps",
    "German": "a list of words",
}
# shoes -> (tool, product)
SHOES = {
    "leather boots": ("a soft brush", "shoe polish"),
    "suede shoes": ("a suede brush", "suede spray"),
    "canvas shoes": ("an old toothbrush", "soap and water"),
    "rubber boots": ("a sponge", "plain water"),
    "leather shoes": ("a soft brush", "shoe polish"),
    "running shoes": ("an old toothbrush", "soap and water"),
    "hiking boots": ("a hard brush", "boot wax"),
    "suede boots": ("a suede brush", "suede spray"),
    "sandals": ("a damp cloth", "a little soap"),
    "football boots": ("a hard brush", "plain water"),
    "slippers": ("a dry brush", "a little soap"),
    "riding boots": ("a soft brush", "saddle soap"),
    "patent shoes": ("a soft cloth", "glass cleaner"),
    "tennis shoes": ("an old toothbrush", "soap and water"),
    "clogs": ("a damp cloth", "wood oil"),
}
SHOE_STATES = _w("muddy, dusty, dirty, wet, sandy, stained, salty, old")
# pet to look after -> (food, home care)
PET_CARE = {
    "dog": ("dog food", "go for a walk three times a day"),
    "cat": ("cat food", "clean the litter box every day"),
    "rabbit": ("hay and greens", "change the straw"),
    "hamster": ("seeds", "check the wheel"),
    "goldfish": ("a pinch of fish food", "check that the water is clear"),
    "parrot": ("seeds and fruit", "talk to it every day"),
    "guinea pig": ("hay and cucumber", "change the straw"),
    "pony": ("hay and oats", "brush its coat"),
    "tortoise": ("dandelions and lettuce", "check the warm lamp"),
    "canary": ("seeds", "change the sand"),
    "hen": ("corn", "collect the eggs"),
    "goat": ("hay", "clean the stall"),
    "ferret": ("meat", "let it run for an hour"),
    "budgie": ("millet", "change the sand"),
    "mouse": ("seeds and oats", "change the bedding"),
}
LOST = {
    "key": ("the door", "your coat pockets"),
    "pair of glasses": ("the bedside table", "the bathroom"),
    "wallet": ("the hall table", "your bags"),
    "phone": ("the sofa", "your coat pockets"),
    "umbrella": ("the hall", "the bus office"),
    "ring": ("the washbasin", "the soap dish"),
    "glove": ("the coat rack", "the car"),
    "remote control": ("the sofa", "the cushions"),
    "watch": ("the bedside table", "the bathroom"),
    "library book": ("the desk", "the bookshelf"),
    "passport": ("the desk", "your travel bag"),
    "scarf": ("the coat rack", "the washing basket"),
    "earring": ("the bed", "the carpet"),
    "notebook": ("the desk", "your school bag"),
    "ticket": ("the hall table", "your coat pockets"),
    "hat": ("the coat rack", "the car"),
    "pen": ("the desk", "your bags"),
    "lunch box": ("the kitchen", "your school bag"),
    "camera": ("the shelf", "your travel bag"),
    "toy car": ("the play corner", "the sofa"),
}
# transport -> (buy or prepare, board, arrive)
TRANSPORT = {
    "train": ("Buy a ticket at the station", "Find the right platform"),
    "bus": ("Look up the bus line", "Wait at the right stop"),
    "bicycle": ("Check the tyres and the brakes", "Choose a quiet road"),
    "car": ("Check the oil and the fuel", "Choose the shortest road"),
    "ferry": ("Book a place on the ferry", "Be at the pier early"),
    "taxi": ("Ring the taxi office", "Agree on the price"),
    "coach": ("Book a seat on the coach", "Find the right bay"),
    "tram": ("Buy a ticket at the machine", "Wait at the right stop"),
}
BUTTONS = _w("wooden, silver, pearl, round, large, small, brass, plastic, horn, square, shiny, flat")
HELLO_GIFTS = _w(
    "a cake, a jar of jam, some biscuits, a small plant, some apples, a loaf of bread, a bunch of flowers, some "
    "fresh eggs, a pot of herbs, a bag of nuts, a pie, some plums"
)

# ---- everyday questions ----
TOOL_USES = _pairs(  # tool with article: what it is used for
    "a ladle: serve soup; a hammer: drive in nails; a saw: cut wood; a needle: sew cloth; a broom: sweep the "
    "floor; a rake: gather leaves; a spade: dig holes; a kettle: boil water; "
    "a sieve: sift flour; a grater: grate cheese; a whisk: beat eggs; a corkscrew: open wine bottles; a "
    "thermometer: measure temperature; a ruler: draw straight lines; a compass: find north; "
    "a ladder: reach high places; a torch: see in the dark; an iron: press shirts; a peeler: peel potatoes; a "
    "rolling pin: roll out dough; a screwdriver: turn screws; a spanner: turn nuts; "
    "a drill: make holes in walls; a brush: paint a fence; a sponge: wash dishes; a mop: wipe the floor; a "
    "bucket: carry water; a wheelbarrow: move earth; a watering can: water plants; "
    "a stapler: join sheets of paper; a rubber: remove pencil marks; a telescope: look at stars; a microscope: "
    "look at tiny things; a scale: weigh flour; a stopwatch: time a race; "
    "an umbrella: keep off the rain; a net: catch fish; a lasso: catch cattle; an oar: row a boat; a sail: catch "
    "the wind; an anchor: hold a ship in place; a comb: tidy hair; "
    "a toothbrush: clean teeth; a towel: dry hands; a thimble: protect a finger; a trowel: plant bulbs; a hoe: "
    "remove weeds; an axe: split logs; a chisel: carve wood; a file: smooth metal; "
    "a pump: fill tyres; a jack: lift a car; a map: find the way; a bookmark: mark a page; an envelope: send a "
    "letter; a fan: cool a room; a stove: heat a pan; a freezer: keep food frozen; "
    "a tin opener: open tins; a funnel: fill bottles; a toaster: brown bread; a colander: drain pasta; a mortar: "
    "crush spices; a lawnmower: cut grass"
)
CATEGORY_WORDS = {
    "fruit": _w("apple, banana, cherry, grape, lemon, mango, orange, peach, pear, plum, strawberry, melon"),
    "vegetable": _w("carrot, cabbage, leek, onion, potato, radish, turnip, parsnip, cauliflower, beetroot"),
    "animal": _w("horse, rabbit, fox, otter, badger, goat, camel, tiger, hedgehog, donkey"),
    "bird": _w("robin, swan, owl, eagle, sparrow, pigeon, duck, heron, magpie, stork"),
    "tool": _w("hammer, saw, drill, spanner, chisel, screwdriver, rake, spade, file, axe"),
    "piece of furniture": _w("table, chair, wardrobe, sofa, bench, desk, stool, bookcase, bed, cupboard"),
    "musical instrument": _w("violin, trumpet, flute, drum, piano, harp, cello, guitar, oboe, tuba"),
    "vehicle": _w("car, bus, lorry, tram, van, tractor, bicycle, scooter, taxi, train"),
    "flower": _w("rose, tulip, daisy, lily, poppy, daffodil, marigold, crocus, dahlia, sunflower"),
    "tree": _w("oak, beech, birch, maple, willow, pine, elm, ash, larch, poplar"),
    "item of clothing": _w("shirt, coat, skirt, scarf, hat, glove, jumper, sock, dress, jacket"),
}
JOB_DUTIES = _pairs(
    "baker: bakes bread and rolls; butcher: cuts and sells meat; tailor: makes and mends clothes; cobbler: mends "
    "shoes; plumber: repairs water pipes; electrician: lays electric cables; carpenter: builds things of wood; "
    "gardener: looks after plants; librarian: lends books to readers; teacher: teaches children; doctor: treats "
    "sick people; nurse: cares for patients; vet: treats sick animals; dentist: looks after teeth; pilot: flies "
    "planes; "
    "sailor: works on ships; farmer: grows crops and keeps animals; fisherman: catches fish; miner: digs coal "
    "and ore; roofer: covers roofs with tiles; mason: builds walls of stone; painter: paints walls and doors; "
    "mechanic: repairs cars; postman: brings letters and parcels; firefighter: puts out fires; judge: decides "
    "cases in court; waiter: serves food to guests; cook: prepares meals; florist: sells flowers; jeweller: "
    "makes rings and chains; "
    "potter: makes bowls of clay; weaver: makes cloth on a loom; shepherd: looks after sheep; beekeeper: keeps "
    "bees for honey; forester: looks after woods; lifeguard: watches over swimmers; cashier: takes the money in "
    "a shop; "
    "chimney sweep: cleans chimneys; glazier: puts glass into windows; blacksmith: shapes hot iron; barber: cuts "
    "hair; optician: sells glasses; pharmacist: sells medicine; journalist: writes news reports; author: writes "
    "books; "
    "actor: plays parts on a stage; conductor: leads an orchestra; coach: trains a team; referee: watches over "
    "the rules of a game; astronomer: studies the stars; translator: turns a text into another language; "
    "architect: plans buildings; locksmith: opens and repairs locks; clockmaker: repairs clocks; tour guide: "
    "shows visitors around; caretaker: looks after a building; surveyor: measures land"
)
PROBLEMS = _pairs(
    "the tap is dripping: plumber; the light switch is broken: electrician; my tooth hurts: dentist; my dog is "
    "ill: vet; the window is cracked: glazier; the car does not start: mechanic; the roof is leaking: roofer; "
    "my shoe has a hole: cobbler; my coat is too long: tailor; the door key is stuck: locksmith; my watch has "
    "stopped: clockmaker; the chimney is full of soot: chimney sweep; my glasses are broken: optician; the fence "
    "needs paint: painter; "
    "the table leg is broken: carpenter; the garden wall has fallen: mason; the pipe under the sink is blocked: "
    "plumber; my cat does not eat: vet; my hair is too long: barber; my ring is bent: jeweller; I need a "
    "prescription filled: pharmacist; "
    "I need a letter in another language: translator; the hedge is dying: gardener; the house is on fire: "
    "firefighter; bees have settled on my porch: beekeeper; I have a high fever: doctor; the engine makes a "
    "strange noise: mechanic; "
    "the socket gives off sparks: electrician"
)
FOOD_COLOURS = _pairs(
    "a ripe lemon: yellow; a ripe banana: yellow; a ripe tomato: red; a ripe strawberry: red; a ripe cherry: "
    "red; a carrot: orange; a pumpkin: orange; an aubergine: purple; a blueberry: blue; a lime: green; a pea: "
    "green; "
    "a cucumber: green; a ripe raspberry: red; a ripe blackberry: black; a coconut: brown; a walnut: brown; a "
    "cauliflower: white; a leaf of spinach: green; an egg yolk: yellow; a grain of rice: white; a coffee bean: "
    "brown; "
    "an orange: orange; a ripe apricot: orange; a stick of celery: green; a beetroot: dark red; a clove of "
    "garlic: white; a kiwi inside: green; a sheet of snow: white; a raven: black; a flamingo: pink; a swan: "
    "white; a canary: yellow; "
    "a frog: green; a lump of coal: black; an emerald: green; a ruby: red; a sapphire: blue; a sunflower: "
    "yellow; a polar bear: white; a fox: reddish brown; a fire engine: red; a lump of salt: white; a cornflower: "
    "blue; "
    "a buttercup: yellow; a ladybird: red with black spots; a zebra: black and white; a crow: black; a lobster "
    "after cooking: red; a stick of cinnamon: brown; a bar of dark chocolate: brown; a snowdrop: white"
)
OPPOSITES = _pairs(
    "heavy: light; hot: cold; big: small; tall: short; fast: slow; old: young; wet: dry; full: empty; hard: "
    "soft; loud: quiet; early: late; open: closed; bright: dark; thick: thin; wide: narrow; deep: shallow; "
    "clean: dirty; "
    "happy: sad; rich: poor; strong: weak; sweet: sour; rough: smooth; brave: cowardly; easy: difficult; cheap: "
    "expensive; near: far; high: low; front: back; inside: outside; begin: end; arrive: leave; buy: sell; give: "
    "take; "
    "win: lose; remember: forget; push: pull; laugh: cry; love: hate; always: never; up: down; left: right; "
    "north: south; east: west; day: night; summer: winter; question: answer; friend: enemy; noise: silence; "
    "sharp: blunt; "
    "polite: rude; lazy: hard-working; safe: dangerous; tidy: messy; sunrise: sunset; lend: borrow; float: sink; "
    "wake: sleep; alive: dead; true: false; generous: mean"
)
# ascending size; only animals at least three places apart are compared
ANIMAL_SIZES = _w(
    "ant, ladybird, bee, snail, frog, mouse, sparrow, rat, squirrel, pigeon, hedgehog, rabbit, cat, fox, beaver, "
    "goat, wolf, pig, deer, lion, donkey, horse, bear, camel, hippo, elephant, whale"
)
# ascending weight
WEIGHTS = _w(
    "feather, leaf, coin, pencil, egg, apple, book, brick, watermelon, suitcase, bicycle, wardrobe, piano, car, lorry, train, ship"
)
SPEEDS = _w("snail, tortoise, toad, duckling, hen, pig, cow, bear, dog, hare, horse, cheetah, falcon")
SOUNDS = _pairs(
    "cow: moo; dog: woof; cat: miaow; sheep: baa; horse: neigh; pig: oink; duck: quack; hen: cluck; cockerel: "
    "cock-a-doodle-doo; owl: hoot; bee: buzz; snake: hiss; frog: croak; lion: roar; mouse: squeak; donkey: "
    "hee-haw; goat: bleat; "
    "crow: caw; pigeon: coo; wolf: howl; turkey: gobble; goose: honk; bird: tweet; bear: growl; cricket: chirp; elephant: trumpet"
)
YOUNG = _pairs(
    "cow: calf; dog: puppy; cat: kitten; sheep: lamb; horse: foal; pig: piglet; duck: duckling; hen: chick; "
    "goat: kid; bear: cub; lion: cub; deer: fawn; goose: gosling; swan: cygnet; frog: tadpole; kangaroo: joey; "
    "seal: pup; owl: owlet; "
    "hare: leveret; elephant: calf; whale: calf; eagle: eaglet; tiger: cub; donkey: foal; butterfly: "
    "caterpillar; fox: cub; wolf: cub; spider: spiderling"
)
HOMES = _pairs(
    "bee: hive; bird: nest; dog: kennel; horse: stable; cow: barn; pig: sty; rabbit: burrow; fox: den; bear: "
    "den; spider: web; hen: coop; beaver: lodge; badger: sett; ant: anthill; lion: den; mole: tunnel; wolf: den; "
    "eagle: nest; "
    "goldfish: tank; sheep: fold; squirrel: drey; otter: holt; canary: cage; snail: shell"
)
EATS = _pairs(
    "cow: grass; rabbit: leaves and grass; lion: meat; squirrel: nuts; bee: nectar; panda: bamboo; owl: mice; "
    "heron: fish; horse: hay and oats; cat: meat; frog: insects; hedgehog: insects and worms; koala: eucalyptus "
    "leaves; sheep: grass; "
    "seal: fish; giraffe: leaves; penguin: fish; mole: worms; spider: insects; wolf: meat; goat: grass and "
    "leaves; parrot: seeds and fruit; tiger: meat; otter: fish; bat: insects; hamster: seeds; deer: grass and "
    "leaves; caterpillar: leaves"
)
LEGS = {
    "cow": 4,
    "horse": 4,
    "hen": 2,
    "duck": 2,
    "ant": 6,
    "bee": 6,
    "spider": 8,
    "dog": 4,
    "cat": 4,
    "beetle": 6,
    "owl": 2,
    "butterfly": 6,
    "goat": 4,
    "ostrich": 2,
    "scorpion": 8,
    "fly": 6,
    "sheep": 4,
    "frog": 4,
    "swan": 2,
    "elephant": 4,
    "ladybird": 6,
    "rabbit": 4,
    "parrot": 2,
    "camel": 4,
    "wasp": 6,
    "tick": 8,
    "robin": 2,
    "fox": 4,
}
SHOPS = _pairs(
    "bread: bakery; rolls: bakery; cakes: bakery; sausages: butcher's; minced beef: butcher's; roses: flower "
    "shop; tulips: flower shop; a newspaper: newsagent's; a magazine: newsagent's; cough syrup: pharmacy; "
    "plasters: pharmacy; "
    "a novel: bookshop; an atlas: bookshop; a dictionary: bookshop; nails: hardware shop; a hammer: hardware "
    "shop; screws: hardware shop; a pot of paint: hardware shop; boots: shoe shop; sandals: shoe shop; slippers: "
    "shoe shop; "
    "a ring: jeweller's; a gold chain: jeweller's; carrots: greengrocer's; apples: greengrocer's; lettuce: "
    "greengrocer's; a teddy bear: toy shop; a puzzle: toy shop; a doll: toy shop; stamps: post office; a "
    "bicycle: bicycle shop; "
    "a bell for my bike: bicycle shop; fresh cod: fishmonger's; shrimps: fishmonger's; a sofa: furniture shop; a "
    "wardrobe: furniture shop; a violin: music shop; drumsticks: music shop; dog food: pet shop; a hamster cage: "
    "pet shop; "
    "seeds: garden centre; a rose bush: garden centre; a football: sports shop; a tennis racket: sports shop; "
    "pencils: stationer's; envelopes: stationer's; glue: stationer's; a lamp: lighting shop; a laptop: "
    "electronics shop; "
    "headphones: electronics shop; a skirt: clothes shop; a raincoat: clothes shop; glasses: optician's; petrol: "
    "petrol station; second-hand books: flea market"
)
MADE_OF = _pairs(
    "a window: glass; a candle: wax; a tyre: rubber; a brick: clay; a book: paper; a nail: steel; a jumper: "
    "wool; a coin: metal; a barrel: wood; a pot for plants: clay; a bottle for wine: glass; an envelope: paper; "
    "a belt: leather; "
    "a raincoat: waterproof cloth; a snowman: snow; a horseshoe: iron; a saddle: leather; a pencil: wood and "
    "graphite; a T-shirt: cotton; a sandcastle: sand; a newspaper: paper; a teacup: china; a log cabin: wood; a "
    "rope: fibres; "
    "a balloon: rubber; a pillow: cloth and feathers; a loaf of bread: flour and water; an omelette: eggs; a "
    "cheese: milk; a pancake: flour, eggs and milk; a raft: wood; a broom: wood and bristles; an anchor: iron; a "
    "mirror: glass"
)
ROOM_THINGS = _pairs(
    "oven: kitchen; fridge: kitchen; bed: bedroom; wardrobe: bedroom; bathtub: bathroom; shower: bathroom; "
    "toothbrush: bathroom; sofa: living room; television: living room; coat rack: hall; doormat: hall; "
    "lawnmower: garden shed; "
    "rake: garden shed; car: garage; spare tyre: garage; wine rack: cellar; boiler: cellar; dining table: dining "
    "room; chandelier: dining room; cot: nursery; toy box: nursery; desk: study; filing cabinet: study; "
    "workbench: workshop; "
    "toaster: kitchen; kettle: kitchen; pillow: bedroom; alarm clock: bedroom; bookcase: living room; armchair: "
    "living room; shoe rack: hall; washing machine: laundry room; ironing board: laundry room; old trunk: attic"
)
BODY = _pairs(
    "eyes: see; ears: hear; nose: smell; tongue: taste; teeth: chew; legs: walk; hands: hold things; lungs: "
    "breathe; heart: pump blood; brain: think; stomach: digest food; knees: bend the legs; fingers: grip small "
    "things; "
    "feet: stand; elbows: bend the arms; skin: feel; lips: kiss; shoulders: lift the arms; bones: support the body; muscles: move"
)
TASTES = _pairs(
    "honey: sweet; lemon juice: sour; vinegar: sour; sea water: salty; sugar: sweet; strong coffee: bitter; "
    "chilli: hot; jam: sweet; soy sauce: salty; dark chocolate: bitter; ripe mango: sweet; ginger: hot; "
    "ice cream: sweet; lime juice: sour; mustard: hot; maple syrup: sweet; rhubarb: sour; black tea: bitter; "
    "toffee: sweet; grapefruit: bitter; horseradish: hot; marzipan: sweet; salted butter: salty"
)
FLOATS = {
    "cork": True,
    "stone": False,
    "coin": False,
    "feather": True,
    "brick": False,
    "wooden spoon": True,
    "nail": False,
    "rubber duck": True,
    "key": False,
    "leaf": True,
    "twig": True,
    "steel ball": False,
    "paper boat": True,
    "spanner": False,
    "beach ball": True,
    "anchor": False,
    "marble": False,
    "candle": True,
    "log": True,
    "brass bell": False,
    "apple": True,
    "hammer": False,
    "plastic bottle": True,
    "gold ring": False,
}
SHAPES = {
    "triangle": 3,
    "square": 4,
    "rectangle": 4,
    "pentagon": 5,
    "hexagon": 6,
    "octagon": 8,
    "rhombus": 4,
    "heptagon": 7,
    "nonagon": 9,
    "decagon": 10,
}
DAYS = _w("Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday")
MONTHS = _w("January, February, March, April, May, June, July, August, September, October, November, December")
SEASONS = ("winter", "winter", "spring", "spring", "spring", "summer", "summer", "summer", "autumn", "autumn", "autumn", "winter")
RELATIONS_HE = _w("son, friend, neighbour, cousin, brother, nephew, colleague, pupil, grandson, uncle")
RELATIONS_SHE = _w("daughter, friend, neighbour, cousin, sister, niece, colleague, pupil, granddaughter, aunt")
