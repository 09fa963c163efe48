"""The word and sentence tables of the story domain."""

from __future__ import annotations

from .lexicon import ANIMALS, OBJECTS

# Too big, or not a thing that a small hero carries, loses, gives or shares.
_NOT_HELD = frozenset((
    "anchor", "armchair", "banner", "barrel", "basin", "bathtub", "bed", "bench", "bib", "bolt", "broom", "cabinet", "cable", "cage",
    "canoe", "canvas", "car", "carpet", "cart", "chair", "chalkboard", "chart", "chest", "cloth", "cooler", "cot", "couch", "crate",
    "cupboard", "curtain", "desk", "door", "doormat", "drawer", "drill", "easel", "fence", "fridge", "frame", "gate", "hammock",
    "hanger", "handle", "harp", "hook", "hose", "ladder", "lampshade", "lawnmower", "leaflet", "lever", "lid", "log", "loom", "mat",
    "match", "mattress", "mixer", "mop", "nail", "napkin", "oar", "peg", "piano", "pipe", "plank", "plug", "printer", "raft", "rake",
    "razor", "rug", "sack", "sail", "saw", "screen", "screw", "seat", "sheet", "shelf", "sieve", "sign", "sled", "sofa", "stapler",
    "stool", "table", "tile", "tub", "tyre", "trolley", "wardrobe", "wheel", "wheelbarrow", "wig", "windmill", "zip", "blender", "boat",
    "bicycle", "tricycle", "swing", "pin", "tin", "soap dish", "toothbrush", "wallet", "funnel", "file", "brick", "bulb", "plant pot",
    "bandage", "clip",
))  # fmt: skip
THINGS = tuple(word for word in OBJECTS if word not in _NOT_HELD)
BREAKABLE = (
    "alarm clock", "banjo", "bowl", "camera", "clock", "compass", "cup", "doll", "drum", "fiddle", "flask", "flowerpot", "flute", "glass",
    "globe", "goblet", "guitar", "jar", "jug", "kite", "lamp", "lantern", "mask", "mirror", "model plane", "mug", "music box", "picture",
    "pitcher", "plate", "pocket watch", "pot", "puppet", "radio", "recorder", "saucer", "seashell", "snow globe", "spinning top", "sundial",
    "tambourine", "teacup", "teapot", "telescope", "toy boat", "toy car", "toy train", "trophy", "trumpet", "umbrella", "vase", "violin",
    "watch", "xylophone",
)  # fmt: skip
SHOPS = (
    "bookshop", "corner shop", "fairground", "fish market", "flea market", "flower shop", "garden centre", "hardware store", "market",
    "pet shop", "shoe shop", "shopping centre", "street market", "supermarket", "toy shop", "village shop",
)  # fmt: skip
KINDS = (
    *ANIMALS,
    "alien", "bunny", "cub", "dinosaur", "dragon", "duckling", "elf", "fairy", "fish", "foal", "giant", "gnome", "king", "knight",
    "mermaid",
    "monster", "pirate", "pixie", "prince", "princess", "puppet", "queen", "robot", "shark", "snowman", "teddy bear", "troll", "unicorn",
    "witch", "wizard",
)  # fmt: skip
MALE_KINDS = frozenset(("king", "prince", "snowman", "bull", "wizard", "peacock"))
FEMALE_KINDS = frozenset(("queen", "princess", "witch", "mermaid", "cow", "hen", "ladybird"))
HERO_TRAITS = (
    "brave", "bright", "busy", "calm", "careful", "cheeky", "cheerful", "clever", "clumsy", "curious", "dreamy", "eager", "friendly",
    "funny",
    "gentle", "happy", "helpful", "honest", "jolly", "kind", "little", "lively", "lonely", "lucky", "merry", "noisy", "patient", "playful",
    "polite", "proud", "quick", "quiet", "shy", "silly", "sleepy", "small", "smart", "tiny", "wise", "young",
)  # fmt: skip
HELPER_TRAITS = ("old", "wise", "kind", "friendly", "clever", "gentle", "patient", "cheerful", "jolly", "calm", "helpful", "strong")
DAYS = tuple(
    f"one {weather} {time}"
    for weathers, times in (
        (
            ("sunny", "bright", "quiet", "misty", "cool", "fresh", "windy", "fine", "lovely", "calm"),
            ("morning", "afternoon", "day", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
        ),
        (("warm", "sunny", "fine", "lovely", "hot"), ("spring morning", "spring day", "summer morning", "summer day", "summer afternoon")),
        (("cold", "grey", "foggy", "windy", "cool"), ("autumn morning", "autumn day", "autumn afternoon", "winter morning", "winter day")),
    )
    for weather in weathers
    for time in times
)
SPOTS = (
    "oak tree", "garden gate", "stone wall", "wooden bridge", "big rock", "haystack", "apple tree", "bench", "red door", "flower bed",
    "water barrel", "fallen log", "blackberry bush", "pile of leaves", "well", "old boat", "fence", "bakery steps", "tall reeds",
    "pine tree",
    "cart", "woodpile", "rose bush", "pear tree", "hedge", "tool shed", "chestnut tree", "willow tree", "milk cart", "lamp post",
)  # fmt: skip
SPOT_LINKS = ("behind the", "beside the", "next to the", "near the", "in front of the")
GLAD = ("happy", "glad", "delighted", "very happy", "very glad", "full of joy")
SAD = ("sad", "worried", "upset", "very sad", "very worried", "unhappy")
NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
SKILLS = (
    "swim", "juggle", "whistle", "dance", "paint", "bake bread", "tie knots", "skate", "climb trees", "sing", "read", "write",
    "count to ten",
    "ride a bicycle", "play the drum", "play the flute", "play chess", "fly a kite", "row a boat", "knit", "sew", "cook soup",
    "catch a ball",
    "skip with a rope", "draw maps", "tell the time", "tell jokes", "make pancakes", "make paper boats", "build sandcastles", "plant seeds",
    "do a handstand", "hop on one leg", "walk on stilts", "throw a hoop", "play the piano", "play the violin", "ski", "dive", "spell",
    "mend a net", "fold paper birds", "carve wood", "weave baskets", "make honey cakes", "play the trumpet", "ride a scooter",
)  # fmt: skip
BUILDS = (
    ("tree house", "planks", "ropes"), ("raft", "logs", "ropes"), ("bridge", "stones", "planks"), ("boat", "planks", "nails"),
    ("snow fort", "snowballs", "sticks"), ("sandcastle", "buckets", "shells"), ("birdhouse", "boards", "nails"),
    ("kite", "sticks", "ribbons"), ("tower", "bricks", "blocks"), ("swing", "ropes", "planks"), ("shed", "boards", "nails"),
    ("cart", "wheels", "planks"), ("den", "branches", "leaves"), ("bench", "logs", "boards"), ("windmill", "sticks", "sails"),
    ("little house", "bricks", "tiles"), ("wall", "stones", "bricks"), ("sled", "boards", "ropes"), ("nest box", "boards", "twigs"),
    ("castle", "boxes", "flags"), ("drum", "tins", "strings"), ("slide", "planks", "nails"), ("tent", "poles", "blankets"),
    ("robot", "boxes", "wheels"), ("rocket", "boxes", "tubes"), ("scarecrow", "sticks", "old clothes"),
)  # fmt: skip
PLANTS = (
    "sunflower", "pumpkin", "tomato plant", "apple tree", "rose", "tulip", "bean plant", "strawberry plant", "cherry tree", "lemon tree",
    "daisy", "poppy", "lavender bush", "pear tree", "daffodil", "melon plant", "carrot", "oak tree", "pea plant", "orchid", "lily",
)  # fmt: skip
FEARS = (
    ("a soft tapping sound", "a branch that tapped on the window"), ("a long grey shadow", "a coat on a hook"),
    ("a strange howling sound", "the wind in the chimney"), ("a pair of shining eyes", "two buttons on an old coat"),
    ("a slow dripping sound", "water that fell into a bucket"), ("a loud creaking noise", "the old gate in the wind"),
    ("a small scratching sound", "a mouse with a nut"), ("a tall dark shape", "a pile of blankets on a chair"),
    ("a deep rumbling noise", "a neighbour who snored"), ("a white shape that moved", "a sheet on the washing line"),
    ("a quiet rustling sound", "dry leaves on the roof"), ("a round pale face", "the moon in the mirror"),
)  # fmt: skip
JOB_TASKS = {
    "baker": "carry the warm bread", "farmer": "bring in the hay", "librarian": "sort the books", "gardener": "water the flowers",
    "postman": "carry the letters", "painter": "mix the paint", "sailor": "tie up the boats", "carpenter": "sand the planks",
    "cook": "peel the potatoes", "tailor": "sort the buttons", "shepherd": "count the sheep", "beekeeper": "fill the honey jars",
    "florist": "tie the ribbons", "grocer": "stack the apples", "teacher": "clean the blackboard", "vet": "feed the kittens",
    "potter": "roll the clay", "shoemaker": "polish the shoes", "miller": "fill the flour sacks", "fisher": "untangle the nets",
    "lighthouse keeper": "light the lamp", "clockmaker": "wind the clocks", "toymaker": "paint the toys", "zookeeper": "wash the elephants",
    "barber": "sweep the floor", "builder": "carry the bricks", "mechanic": "find the tools", "plumber": "hold the pipes",
    "firefighter": "roll up the hoses", "nurse": "fold the blankets", "doctor": "wrap the bandages", "waiter": "set the tables",
    "musician": "turn the pages", "clown": "blow up the balloons", "magician": "look after the rabbits",
    "train driver": "check the tickets",
    "window cleaner": "carry the buckets", "weaver": "wind the wool", "blacksmith": "stack the wood", "photographer": "hold the lamps",
}  # fmt: skip
CONTESTS = (
    ("singing contest", "sang an old song"), ("baking contest", "baked a cherry cake"), ("dancing contest", "danced on one leg"),
    ("painting contest", "painted a picture of the sea"), ("cooking contest", "cooked a hot soup"), ("swimming contest", "swam across"),
    ("jumping contest", "jumped over the rope"), ("kite contest", "flew a paper kite"), ("story contest", "told a funny story"),
    ("juggling contest", "juggled with five balls"), ("snowman contest", "built a tall snowman"), ("drumming contest", "played the drum"),
)  # fmt: skip
MORALS = {
    "friendship": "friend", "making friends": "friend", "kindness": "job", "helping others": "rescue", "sharing": "share",
    "honesty": "finds", "saying sorry": "sorry", "courage": "night", "being brave": "night", "patience": "grow", "hard work": "build",
    "never giving up": "skill", "practice": "skill", "generosity": "gift", "a storm": "storm", "fair play": "race", "teamwork": "build",
    "a race": "race", "a long journey": "journey", "something lost": "lost", "a birthday": "party", "a surprise party": "party",
    "a treasure": "treasure", "an adventure": "treasure", "forgiveness": "sorry", "being afraid of the dark": "night", "giving": "gift",
    "a garden": "grow", "a rescue": "rescue", "learning something new": "skill",
}  # fmt: skip

OPENINGS = (
    "Once upon a time, {a_hero} named {n} lived {home}.",
    "Once there was {a_hero} named {n}, who lived {home}.",
    "{n} was {a_hero} who lived {home}.",
    "There once lived {a_hero} named {n} {home}.",
    "Long ago, {a_hero} named {n} lived {home}.",
)
CLOSINGS = (
    "That evening, {n} was {glad}.",
    "That night, {n} fell asleep with a smile.",
    "From then on, {n} and {g} were good friends.",
    "{n} never forgot that day.",
    "It was the best day of the year for {n}.",
    "In the evening, {n} and {g} shared {foods} and laughed.",
    "After that, {n} told the story to everyone.",
    "{n} and {g} talked about it for a long time.",
)

# task -> (prompts, beats); every way through the beats is a coherent story, because each beat only uses what the slots fix.
PLOTS: dict[str, tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]] = {
    "lost": (
        (
            "Write a short story about {a_hero} named {n} who loses {his} {o}.",
            "Tell me a story about {a_kind} named {n} and a lost {o}.",
            "Write a story in which {a_kind} named {n} loses {a_o} and finds it again.",
            "Make up a short story about a lost {o}. The hero is {a_kind} named {n}.",
            "Tell a short story: {n} the {kind} has lost {a_qo}.",
            "Give me a story about {a_kind} that looks for a lost {o}.",
        ),
        (
            (
                "{n} loved {his} {qo} more than anything else.",
                "{n} had {a_qo} and took it everywhere.",
                "{His} favourite thing was {a_qo}.",
            ),
            (
                "{day}, the {o} was gone. {n} looked {spot}, but it was not there.",
                "{day}, {n} could not find the {o}. It was not {spot}, and it was not at home.",
                "{day}, {n} came back from the {p} without the {o}. {He} felt {sad}.",
            ),
            (
                '\n{n} asked {a_ghero} named {g} for help. "Where did you have it last?" asked {g}.',
                '\n{A_ghero} named {g} saw that {n} was {sad}. "Let us look for it together," said {g}.',
                '\n"Do not cry," said {a_ghero} named {g}. "A lost thing can be found."',
            ),
            (
                "{n} thought hard and remembered the {p}. They went there, and the {o} lay {spot2}.",
                "They walked slowly to the {p} and looked everywhere. At last {n} saw the {o} {spot2}.",
                "They looked for a long time. Then {g} pointed to the {o}, which lay {spot2}.",
            ),
            (
                '"Thank you, {g}!" said {n}, and held the {o} tight.',
                "{n} thanked {g} and carried the {o} home.",
                "{n} hugged {g} and promised to take better care of the {o}.",
            ),
        ),
    ),
    "friend": (
        (
            "Write a short story about {a_hero} named {n} who makes a new friend.",
            "Tell me a story about {a_kind} named {n} who meets {a_gkind} named {g}.",
            "Write a story about a new friend. The hero is {a_hero} named {n}.",
            "Make up a story in which {n} the {kind} and {g} the {gkind} become friends.",
            "Tell a short story about the friendship of {a_kind} and {a_gkind}.",
            "Give me a short story about {a_kind} named {n} who feels lonely.",
        ),
        (
            (
                "{n} often played alone and wished for a friend.",
                "{n} had many toys, but nobody to play with.",
                "Every day {n} played alone, and {he} felt lonely.",
            ),
            (
                "{day}, {a_ghero} named {g} came to live {spot}. {n} was too shy to say hello.",
                "{day}, {n} saw {a_ghero} named {g} at the {p}. {g} was alone, too.",
                "{day}, {n} met {a_ghero} named {g} {spot}. At first they did not speak.",
            ),
            (
                '\nThen {n} held out {a_qo}. "Would you like to play with this?" asked {n}.',
                '\nThen {g} dropped {a_qo}, and {n} picked it up. "Is this yours?" asked {n}.',
                '\n{n} took a deep breath. "I have {a_qo}," said {n}. "We can play with it."',
            ),
            (
                '{g} smiled. "Yes," said {g}. "Let us play with the {o} together."',
                '"How kind you are!" said {g}. "Come and play with me."',
            ),
            (
                "They played with the {o} until the sun went down, and {n} was not lonely any more.",
                "They played all day with the {o}, and in the evening they were friends.",
                "Soon they laughed together, and {n} knew that {g} was a real friend.",
            ),
        ),
    ),
    "storm": (
        (
            "Write a short story about {a_hero} named {n} in a storm.",
            "Tell me a story about {a_kind} named {n} and a big storm.",
            "Write a story in which a storm comes and {n} the {kind} must find shelter.",
            "Make up a story about a storm, {a_kind} and {a_o}.",
            "Tell a short story about {a_kind} named {n}, {a_o} and a storm.",
            "Give me a story about {a_hero} who is caught in a storm.",
        ),
        (
            (
                "{day}, {n} went for a walk to the {p} with {a_qo}.",
                "{day}, {n} took {a_qo} and walked to the {p}.",
                "{day}, {n} was on the way to the {p} with {a_qo} in a bag.",
            ),
            (
                "Then dark clouds came, the wind blew hard, and the storm began. {n} was frightened.",
                "Suddenly the sky turned black. The storm began, and {n} was wet and cold.",
                "All at once the storm came, with rain, thunder and a strong wind. {n} could hardly see.",
            ),
            (
                '\n"Come in here!" called {a_ghero} named {g}, who sat in a dry place {spot}.',
                '\n{A_ghero} named {g} stood in a dry place {spot} and waved. "Over here!" called {g}.',
                '\n{n} heard a voice. "Come to me!" called {a_ghero} named {g} from a dry place {spot}.',
            ),
            (
                "{n} ran to {g}, and they waited together. {g} sang a song, and {n} was not frightened any more.",
                "{n} hurried inside. They ate {foods} and counted the thunder until it was far away.",
                "{n} sat down next to {g}. They told funny stories while the rain fell.",
            ),
            (
                "At last the storm was over. {n} gave {g} the {o} to say thank you.",
                "Then the storm stopped and the sun came out. {n} picked up the {o}, thanked {g} and went home.",
                "When the storm had gone, the {o} was still dry, and {n} thanked {g}.",
            ),
        ),
    ),
    "skill": (
        (
            "Write a short story about {a_hero} named {n} who learns to {skill}.",
            "Tell me a story about {a_kind} named {n} who wants to learn to {skill}.",
            "Write a story in which {n} the {kind} learns to {skill} with the help of {a_gkind}.",
            "Make up a short story about {a_kind} that cannot {skill}.",
            "Tell a short story about {n}, {a_hero} who practises every day to {skill}.",
            "Give me a story about {a_kind} who learns how to {skill}.",
        ),
        (
            (
                "{n} wanted to learn to {skill}.",
                "More than anything, {n} wished to {skill}.",
                "All the others could {skill}, but {n} could not.",
            ),
            (
                "{day}, {n} tried it for the first time, and everything went wrong. {n} felt {sad}.",
                "{day}, {n} tried to {skill} at the {p}, but it did not work at all.",
                '{day}, {n} tried {num} times and failed {num} times. "I cannot do it," said {n}.',
            ),
            (
                '\n{A_ghero} named {g} had seen it. "Start slowly and practise every day," said {g}.',
                '\n"Nobody can do it on the first day," said {a_ghero} named {g}. "I will help you."',
                '\nThen {n} asked {a_ghero} named {g} for help. "Take one small step at a time," said {g}.',
            ),
            (
                "So {n} practised {spot} every day. It went a little better each time.",
                "{n} practised in the morning, and {n} practised in the evening. {g} helped for {num} days.",
                "They practised together for {num} weeks. {n} made mistakes, but {n} did not give up.",
            ),
            (
                'At last {n} could {skill}. "Well done!" said {g}.',
                "Then, one day, it worked. {n} could {skill}, and everyone clapped.",
                "In the end {n} could {skill} very well, and {g} was proud.",
            ),
        ),
    ),
    "share": (
        (
            "Write a short story about {a_hero} named {n} who learns to share {his} {o}.",
            "Tell me a story about {a_kind} named {n} who shares {a_o} with {a_gkind}.",
            "Write a story about sharing, with {a_kind} named {n} and {a_o}.",
            "Make up a story in which {n} the {kind} does not want to share {a_qo}.",
            "Tell a short story about sharing. {n} and {g} both want the {o}.",
            "Give me a story about {a_kind} that shares {a_o} with a friend.",
        ),
        (
            (
                "{n} had {a_qo} and was very proud of it.",
                "{n} got {a_qo} and played with it all day.",
                "The best thing that {n} had was {a_qo}.",
            ),
            (
                '{day}, {a_ghero} named {g} came by. "May I try the {o}?" asked {g}. "No, it is mine," said {n}.',
                "{day}, {n} took the {o} to the {p}. {A_ghero} named {g} wanted to try it, but {n} said no.",
            ),
            (
                "\n{g} went away and sat {spot}. {n} had the {o}, but it was no fun to play alone.",
                "\n{g} walked away slowly. {n} looked at the {o} and felt sad.",
                "\n{g} looked sad and said nothing. Soon {n} felt sad, too.",
            ),
            (
                'So {n} went to {g}. "I am sorry," said {n}. "Let us share the {o}."',
                '"I was not kind," thought {n}, and went to find {g}. "Here is the {o}," said {n}. "You can go first."',
                'Then {n} ran to {g}. "Please play with me," said {n}. "We can share the {o}."',
            ),
            (
                "They took turns with the {o} and laughed. It was twice as much fun to share.",
                "{g} was {glad}, and they shared the {o} all afternoon.",
                "{g} smiled and shared {foods} with {n}. They played with the {o} until it was dark.",
            ),
        ),
    ),
    "race": (
        (
            "Write a short story about a race between {n} the {kind} and {g} the {gkind}.",
            "Tell me a story about {a_hero} named {n} who runs a race to the {p}.",
            "Write a story about {a_kind} and {a_gkind} who have a race.",
            "Make up a short story about a race. The hero is {a_hero} named {n}.",
            "Tell a short story about a race from the {p} to the {p2}, with {a_kind} named {n}.",
            "Give me a story about {a_kind} that wants to win a race.",
        ),
        (
            (
                "{day}, there was a big race from the {p} to the {p2}. {n} wanted to win it.",
                '{day}, {a_ghero} named {g} said, "Let us have a race from the {p} to the {p2}."',
            ),
            (
                "The prize was {a_qo}. {n} ran against {g} the {gkind}, who was very fast.",
                "The winner would get {a_qo}. {g} the {gkind} was the fastest of all, and {n} was nervous.",
            ),
            (
                "\nOne, two, three, go! {g} was soon far ahead, and {n} came behind.",
                "\nThe race began. {g} ran like the wind, but {n} kept a steady pace.",
            ),
            (
                '{Spot}, {g} fell and hurt a leg. {n} stopped and said, "Lean on me, {g}."',
                'Then {g} tripped and fell {spot}. {n} could have won, but {n} stopped. "I will help you," said {n}.',
                'Halfway, {g} fell down {spot}. {n} stopped at once. "A friend is more important than a race," said {n}.',
            ),
            (
                "They walked to the {p2} together and crossed the line side by side. Both of them won the {o}.",
                "They reached the {p2} side by side, and everyone cheered. {g} gave the {o} to {n}.",
                'Together they came to the {p2}. "{n} is the real winner," said {g}, and everyone clapped.',
            ),
        ),
    ),
    "sorry": (
        (
            "Write a short story about {a_hero} named {n} who breaks {a_o} and says sorry.",
            "Tell me a story about {a_kind} named {n} who makes a mistake and apologises.",
            "Write a story in which {n} the {kind} breaks the {o} of {a_gkind} named {g}.",
            "Make up a short story about saying sorry, with {a_kind}, {a_gkind} and {a_o}.",
            "Tell a short story: {n} the {kind} has broken {a_qo} by mistake.",
            "Give me a story about {a_kind} that is sorry for a mistake.",
        ),
        (
            (
                "{n} had a friend named {g}, who was {a_ghero}. {g} had {a_qo}.",
                "{His} best friend was {a_ghero} named {g}. {g} owned {a_qo} and loved it.",
            ),
            (
                "{day}, {n} played with the {o} without asking. It fell down and broke.",
                "{day}, {n} ran around too fast and bumped into the {o}. The {o} broke.",
                "{day}, {n} was careless, and the {o} fell down. There was a loud crack, and it was broken.",
            ),
            (
                "\nAt first {n} hid the broken {o} {spot}. But {n} felt {sad} and could not eat.",
                "\n{n} felt {sad}. {He} wanted to run away to the {p}, but that would not be right.",
                '\n"What have I done?" thought {n}. {He} was afraid that {g} would be angry.',
            ),
            (
                'So {n} went to {g} and told the truth. "I broke the {o}," said {n}. "I am very sorry."',
                'Then {n} took a deep breath and went to {g}. "It was my mistake, and I am sorry," said {n}.',
            ),
            (
                '"Thank you for telling me," said {g}. They mended the {o} together with glue.',
                "{g} was quiet for a moment and then smiled. Together they mended the {o}.",
                '{g} was not angry for long. "We can mend it," said {g}, and soon the {o} was as good as new.',
            ),
        ),
    ),
    "night": (
        (
            "Write a short story about {a_hero} named {n} who is afraid of the dark.",
            "Tell me a bedtime story about {a_kind} named {n} who cannot sleep.",
            "Write a bedtime story about {a_kind} named {n} and {a_o}.",
            "Make up a story in which {n} the {kind} is afraid at night.",
            "Tell a short bedtime story about {a_hero} who hears a noise at night.",
            "Give me a short bedtime story with {a_kind} named {n}.",
        ),
        (
            (
                "{n} liked the day, but {n} was afraid of the dark.",
                "In the daytime {n} was brave, but at night {n} was afraid.",
                "Every night {n} was afraid, because the dark was so big.",
            ),
            (
                "One night, {n} lay awake. There was {fear}, and {n} hid under the blanket.",
                "One {night} night, {n} could not sleep. There was {fear} in the dark.",
            ),
            (
                '\n"Who is there?" whispered {n}. {A_ghero} named {g} came in with {a_qo}.',
                '\n{n} called for help, and {a_ghero} named {g} came with {a_qo}. "Let us go and look," said {g}.',
            ),
            (
                "{n} held the {o} tight. Together they looked and saw that it was only {cause}.",
                "They took the {o} and went to look. It was only {cause}.",
            ),
            (
                '{n} laughed. "The dark is not so bad when you know what is in it," said {n}, and went to sleep.',
                '"Was that all?" said {n}, and laughed. {n} put the {o} by the bed and slept until the morning.',
                "{n} was not afraid any more. {n} went back to bed, closed both eyes and slept well.",
            ),
        ),
    ),
    "gift": (
        (
            "Write a short story about {a_hero} named {n} who gives {a_o} to a friend.",
            "Tell me a story about {a_kind} named {n} and a gift for {a_gkind} named {g}.",
            "Write a story about a gift. {n} the {kind} wants to give {g} {a_o}.",
            "Make up a short story about {a_kind} that looks for the right present.",
            "Tell a short story about a present: {a_qo} for {g} the {gkind}.",
            "Give me a story in which {n} the {kind} finds a gift for a friend.",
        ),
        (
            (
                "{His} best friend was {a_ghero} named {g}. {n} wanted to give {g} a gift.",
                "{n} had a friend, {a_ghero} named {g}. Soon {g} would have a birthday, and {n} needed a gift.",
            ),
            (
                "{day}, {n} went to the {shop} and looked for a gift, but {n} had only {num} coins.",
                "{day}, {n} looked for a gift at the {shop}. Everything cost too much, and {n} felt {sad}.",
            ),
            (
                "\nThen {n} had an idea. At home there was an old {qo}, which nobody used any more.",
                "\nOn the way home, {n} saw an old {qo} that somebody had thrown away {spot}.",
            ),
            (
                "{n} cleaned the {o} and tied {a_colour} ribbon around it.",
                "{n} worked for {num} days. {n} mended the {o} and tied {a_colour} ribbon around it.",
            ),
            (
                '"Is this {o} for me?" said {g}. "It is the best gift in the world!"',
                "{g} opened the parcel and found the {o} with the {colour} ribbon. {g} loved it.",
                'When {g} saw the {o} with the {colour} ribbon, {g} jumped for joy. "Thank you, {n}!" said {g}.',
            ),
        ),
    ),
    "job": (
        (
            "Write a short story about {a_hero} named {n} who helps {a_job}.",
            "Tell me a story about {a_kind} named {n} and {a_job}.",
            "Write a story in which {n} the {kind} helps {a_job} at the {p}.",
            "Make up a short story about {a_job} who needs help from {a_kind}.",
            "Tell a short story about {a_kind} named {n}, {a_job} and {a_o}.",
            "Give me a story about {a_hero} who works for a day with {a_job}.",
        ),
        (
            (
                "{n} liked to help others.",
                "{n} wanted to do something useful.",
                "{n} was looking for something to do.",
            ),
            (
                "{day}, {n} met {a_job} named {g} at the {p}. The {job} looked very tired.",
                "{day}, {n} walked past the {p} and saw {a_job} named {g}, who had too much work.",
            ),
            (
                '\n"May I help you?" asked {n}. "Yes, please," said the {job}. "Can you {task}?"',
                '\n"I must {task}, and I am all alone," said the {job}. "I will help you," said {n}.',
                '\nThe {job} sighed. "I have to {task} before dark," said {g}. "Then let me help," said {n}.',
            ),
            (
                "It was hard work to {task}, but {n} did not stop. {n} worked until the sun was low.",
                "So {n} began to {task}. Sometimes it went wrong, but {n} tried again.",
                "{n} learned to {task}, and the {job} sang a song. Together they were quick.",
            ),
            (
                'In the evening all the work was done. The {job} gave {n} {a_qo} and said, "Thank you, my friend."',
                '"What a good helper you are!" said the {job}, and gave {n} {a_qo}.',
                "The {job} was {glad} and gave {n} {a_qo}. {n} carried the {o} home with pride.",
            ),
        ),
    ),
    "journey": (
        (
            "Write a short story about {a_hero} named {n} who travels from {town} to {town2}.",
            "Tell me a story about a journey from {town} to {town2}.",
            "Write a story in which {n} the {kind} takes {a_o} from {town} to {town2}.",
            "Make up a story about {a_kind} named {n} on the way to {town2}.",
            "Tell a short story about a long journey. {n} goes from {town} to {town2}.",
            "Give me a story about {a_kind} that travels from {town} to {town2} with {a_o}.",
        ),
        (
            (
                "{day}, {n} left {town} to take {a_qo} to a friend in {town2}.",
                "A friend in {town2} needed {a_qo}. So {day_l}, {n} left {town} with it.",
            ),
            (
                "The road to {town2} was long, and after {num} hours {n} came to a fork. {n} did not know the way.",
                "It was a long way to {town2}. {n} walked for {num} hours, and then the road was lost in the fog.",
                "{n} walked past the {p} and over the hills. Then the path to {town2} ended at a river.",
            ),
            (
                '\nThere {n} met {a_ghero} named {g}. "Do you know the way to {town2}?" asked {n}.',
                '\n{A_ghero} named {g} sat {spot}. "I want to go to {town2}," said {n}. "Can you help me?"',
            ),
            (
                '"Yes," said {g}. "I will come with you." They walked on together and shared {foods}.',
                '"Follow me," said {g}. "I know a short way." They walked past the {p2} and sang a song.',
            ),
            (
                "In the evening they saw the lights of {town2}. The friend was {glad} to get the {o}.",
                "Before dark they reached {town2}. {n} gave the {o} to the friend, and they all had supper.",
                "At last they came to {town2}, and the {o} was safe. The friend thanked {n} and {g}.",
            ),
        ),
    ),
    "build": (
        (
            "Write a short story about {a_hero} named {n} who builds a {build}.",
            "Tell me a story about {a_kind} named {n} who wants to build a {build}.",
            "Write a story in which {n} the {kind} and {g} the {gkind} build a {build}.",
            "Make up a short story about building a {build}. The hero is {a_kind}.",
            "Tell a short story about {a_kind} and {a_gkind} who build a {build} together.",
            "Give me a story about {a_hero} and a {build}.",
        ),
        (
            (
                "{n} wanted to build a {build} {spot}.",
                "{day}, {n} had an idea. {n} wanted to build a {build} {spot}.",
                "{n} had always dreamed of a {build}, and {day_l}, {n} began to build one.",
            ),
            (
                "{n} worked all day with {part1} and {part2}. But in the evening the {build} fell apart.",
                "{n} had {part1}, but {n} had no plan. The {build} fell apart {num} times.",
            ),
            (
                '\n{A_ghero} named {g} came by. "Let us make a plan first," said {g}.',
                '\n"It is too hard for one," said {a_ghero} named {g}. "Let us do it together."',
                '\nThen {a_ghero} named {g} came from the {p} to help. "First we need a good plan," said {g}.',
            ),
            (
                "They drew a plan and sorted the {part1}. {n} held the {part1}, and {g} brought the {part2}.",
                "{g} brought more {part2}, and {n} put the {part1} in the right place. They worked for {num} days.",
            ),
            (
                'At last the {build} was ready, and it did not fall apart. "We did it!" said {n}.',
                "Soon the {build} stood strong, and everyone came to see it.",
                "When the {build} was ready, {n} and {g} were {glad}. Two can build more than one.",
            ),
        ),
    ),
    "finds": (
        (
            "Write a short story about {a_hero} named {n} who finds {a_o}.",
            "Tell me a story about {a_kind} named {n} who finds {a_qo}.",
            "Write a story in which {n} the {kind} finds {a_o} at the {p}.",
            "Make up a short story about {a_kind} that finds {a_qo}.",
            "Tell a short story: {n} the {kind} finds {a_o} and looks for the owner.",
            "Give me a story about {a_hero} who finds {a_o} and gives it back.",
        ),
        (
            (
                "{day}, {n} went to the {p} and found {a_qo} {spot}.",
                "{day}, {n} was on the way to the {p}. {Spot}, {n} found {a_qo}.",
            ),
            (
                '"What a fine {o}!" said {n}. {n} wanted to keep the {o}, but somebody might miss it.',
                '{n} had always wanted {a_o}. "But this {o} is not mine," thought {n}.',
            ),
            (
                '\nSo {n} asked everyone at the {p}, "Have you lost {a_o}?" But nobody had.',
                "\n{n} carried the {o} from door to door. {He} asked {num} neighbours, but nobody knew it.",
            ),
            (
                'Then {n} saw {a_ghero} named {g}, who was crying. "I have lost my {o}," said {g}.',
                'At last {n} met {a_ghero} named {g}, who looked for something. "Where is my {o}?" said {g}.',
            ),
            (
                '"Here it is!" said {n}. {g} was {glad} and gave {n} a bag of {foods} to say thank you.',
                '{n} gave {g} the {qo}. "You are honest," said {g}. "Come and play with me."',
                '"Is this your {o}?" asked {n}. {g} jumped for joy and thanked {n} {num} times.',
            ),
        ),
    ),
    "three": (
        (
            "Tell me a story with {a_kind}, {a_o} and {a_pc}.",
            "Write a short story that has {a_kind}, {a_o} and {a_pc} in it.",
            "Make up a story with these words: {kind}, {o}, {pc}.",
            "Write a story about {a_kind} and {a_o} at the {pc}.",
            "Tell a short story in which {a_kind} brings {a_o} to the {pc}.",
            "Give me a story with {a_kind}, {a_gkind} and {a_o}.",
        ),
        (
            (
                "{day}, {n} took {a_qo} to the {pc}.",
                "{day}, {n} went to the {pc} and took {a_qo} along.",
                "{day}, {n} had a plan: to show {a_qo} to everyone at the {pc}.",
            ),
            (
                "At the {pc}, a strong wind came and blew the {o} onto a high roof.",
                "But at the {pc}, the {o} fell into a deep hole, and {n} could not reach it.",
                "There were so many people at the {pc} that {n} dropped the {o}, and it slid under a big cart.",
            ),
            (
                '\n"Oh no!" cried {n}. {A_ghero} named {g} heard it and came to help.',
                '\n{n} was {sad}. Then {a_ghero} named {g} came by and asked, "What is wrong?"',
            ),
            (
                '"I can get the {o} back," said {g}. {g} took a long stick and pulled, and {n} helped.',
                '"Do not worry," said {g}. They worked together, and after {num} minutes {g} had the {o}.',
            ),
            (
                "{n} thanked {g}, and they stayed at the {pc} and played with the {o} until dark.",
                '"You saved my {o}!" said {n}. They sat down at the {pc} and ate {foods} together.',
            ),
        ),
    ),
    "rescue": (
        (
            "Write a short story about {a_hero} named {n} who rescues {a_gkind}.",
            "Tell me a story about {a_kind} named {n} who saves {a_gkind} named {g}.",
            "Write a story in which {n} the {kind} helps {a_gkind} that is stuck.",
            "Make up a short story about a rescue with {a_kind}, {a_gkind} and {a_o}.",
            "Tell a short story about {a_kind} that helps {a_gkind} out of a hole.",
            "Give me a story about {a_hero} who helps {a_gkind}.",
        ),
        (
            (
                "{day}, {n} was on the way to the {p} with {a_qo}.",
                "{day}, {n} packed {a_qo} and went for a walk to the {p}.",
            ),
            (
                'Then {n} heard a voice. "Help! I am stuck!" called {a_ghero} named {g} from a deep hole {spot}.',
                "{spot}, {n} saw {a_ghero} named {g}. {g} had fallen into a hole and could not get out.",
            ),
            (
                '\n"Stay calm, {g}," said {n}. "I will get you out." {n} tried to pull, but the hole was too deep.',
                '\n"I will help you, {g}," said {n}. But the hole was too deep, and {n} was not strong enough alone.',
            ),
            (
                "So {n} tied the {o} to a long rope and let it down. {g} held on to the {o}, and {n} pulled with all {his} strength.",
                "Then {n} ran to the {p} and came back with {num} friends and a rope. They all pulled together.",
            ),
            (
                "Slowly {g} came up and was safe. {g} thanked {n} again and again.",
                'At last {g} was free. "You are a hero, {n}!" said {g}.',
            ),
        ),
    ),
    "grow": (
        (
            "Write a short story about {a_hero} named {n} who grows {a_plant}.",
            "Tell me a story about {a_kind} named {n} and {a_plant}.",
            "Write a story in which {n} the {kind} plants a seed.",
            "Make up a short story about {a_kind} that waits for {a_plant} to grow.",
            "Tell a short story about {a_plant} and {a_hero} named {n}.",
            "Give me a story about {a_kind} with a garden and {a_plant}.",
        ),
        (
            (
                "{day}, {n} got a tiny seed from {a_ghero} named {g}. {n} wanted to grow {a_plant}.",
                '{day}, {a_ghero} named {g} gave {n} a seed. "One day it will be {a_plant}," said {g}.',
            ),
            (
                "{n} planted the seed {spot} and gave it water. The next day there was nothing to see, and {n} was {sad}.",
                "{n} put the seed into the soil {spot}. {num_c} days went by, and nothing happened.",
            ),
            (
                '\n"Why does it not grow?" asked {n}. "Be patient," said {g}. "It needs water, sun and time."',
                '\n{n} wanted to dig up the seed, but {g} said, "Wait. Good things need time."',
            ),
            (
                "So {n} watered the seed every morning and sang to it every evening.",
                "So {n} waited. {n} brought water every day and pulled out the weeds.",
            ),
            (
                "After {num} weeks, a green leaf came out, and in summer the {plant} was tall and strong.",
                "Then, one morning, a small leaf looked out of the soil. Week by week the {plant} grew.",
            ),
            (
                '"It was worth the wait," said {n}, and showed the {plant} to {g}.',
                "{n} danced around the {plant}, and {g} clapped.",
            ),
        ),
    ),
    "party": (
        (
            "Write a short story about a birthday party for {a_hero} named {n}.",
            "Tell me a story about the birthday of {n} the {kind}.",
            "Write a story in which {g} the {gkind} plans a surprise party for {n} the {kind}.",
            "Make up a short story about {a_kind} and a surprise party.",
            "Tell a short story about {a_kind} named {n} whose birthday is forgotten.",
            "Give me a birthday story with {a_kind} named {n} and {a_o}.",
        ),
        (
            (
                "It was the birthday of {n}, but nobody said a word about it.",
                "{n} woke up early, because it was {his} birthday.",
            ),
            (
                "{n} went to the {p}, but nobody was there. {n} felt {sad}.",
                "{n} looked for {his} friend {g} the {gkind}, but the house was empty. {n} felt {sad}.",
            ),
            (
                '\n"Has everyone forgotten my birthday?" thought {n}, and walked home slowly.',
                "\n{n} sat down {spot} and sighed. Then {n} walked home.",
            ),
            (
                '{n} opened the door. "Surprise!" called {g} the {gkind}, and {num} friends jumped out.',
                'But at home all the lights went on. "Happy birthday, {n}!" called {g} the {gkind} and {num} friends.',
            ),
            (
                "There was a cake, there were {foods}, and there was {a_qo} for {n}.",
                "They had baked a big cake and brought {foods}. {g} gave {n} {a_qo}.",
            ),
            (
                '"You did not forget me!" said {n}, and hugged {g} and the {o}.',
                "They danced and sang until late, and {n} did not let go of the {o}.",
            ),
        ),
    ),
    "treasure": (
        (
            "Write a short story about {a_hero} named {n} who looks for a treasure.",
            "Tell me an adventure story about {a_kind} named {n} and a treasure map.",
            "Write a story in which {n} the {kind} and {g} the {gkind} find a treasure.",
            "Make up an adventure with {a_kind}, {a_gkind} and an old map.",
            "Tell a short adventure story about {a_kind} and a hidden treasure at the {p}.",
            "Give me an adventure story about {a_hero} named {n}.",
        ),
        (
            (
                "{day}, {n} found an old map {spot}. A big cross marked a place near the {p}.",
                "{day}, a map fell out of an old book. It showed {n} the way to a treasure near the {p}.",
            ),
            (
                '"Let us go and find the treasure," said {n} to {a_ghero} named {g}.',
                '{n} showed the map to {a_ghero} named {g}. "A treasure!" said {g}. "Let us go at once."',
            ),
            (
                "\nThey walked for {num} hours, but then a big stone closed the way.",
                "\nThe way was long. They crossed {num} streams and came to a dark cave.",
            ),
            (
                '"I am afraid," said {g}. "We will stay together," said {n}, and so they went on.',
                'They almost gave up, but {n} said, "One more step, {g}. We are nearly there."',
            ),
            (
                "Near the {p} they dug and dug. At last they found a box with {a_qo}.",
                "At last they came to the cross near the {p}. They dug and found {a_qo}.",
            ),
            (
                '"The {o} is nice," said {n}, "but our adventure was the real treasure."',
                "They carried the {o} home and took turns to keep it.",
            ),
        ),
    ),
    "mystery": (
        (
            "Write a short story about a little mystery with {a_kind} named {n}.",
            "Tell me a mystery story about {a_kind} and {a_o}.",
            "A small mystery with {a_kind}, please.",
            "Tell a detective story for children. The detective is {a_hero}.",
            "Who took the {o}? Tell me that story with {a_kind}.",
            "Write a story in which {n} the {kind} solves a riddle at the {p}.",
        ),
        (
            (
                "{n} liked to solve riddles.",
                "{n} wanted to be a detective.",
                "Nobody was better at riddles than {n}.",
            ),
            (
                "{day}, the {qo} of the {p} was gone, and nobody knew why.",
                "{day}, somebody had taken the {qo} from the {p}.",
                "There was {a_qo} at the {p}, but {day_l} it was gone.",
            ),
            (
                "\n{n} looked at the ground and saw {num} small footprints. They ended {spot}.",
                "\n{n} looked around and found a trail of crumbs. It ended {spot}.",
                "\n{n} asked everyone and wrote it all down. Then {n} heard a soft noise {spot}.",
            ),
            (
                'There sat {a_ghero} named {g} with the {o}. "I only wanted to clean it," said {g}.',
                '{A_ghero} named {g} sat there and held the {o}. "It was broken, and I have mended it," said {g}.',
                'It was {a_ghero} named {g}, who had the {o}. "I wanted to look at it and forgot the time," said {g}.',
            ),
            (
                '"So that is the answer!" said {n}, and they carried the {o} back together.',
                "{n} laughed. The riddle was solved, and the {o} was back before dark.",
                '"Next time you should ask first," said {n}. They brought the {o} back, and everyone clapped.',
            ),
        ),
    ),
    "contest": (
        (
            "Write a short story about {a_kind} named {n} in a {contest}.",
            "Tell me a story about {a_kind} that wants to win a {contest}.",
            "A story about a {contest} with {a_kind} and {a_gkind}, please.",
            "Write a story about {a_hero} and a {contest}.",
            "Tell a short story about a {contest} at the {p}. The hero is {a_kind}.",
        ),
        (
            (
                "{n} wanted to win the {contest} at the {p}.",
                "Soon there would be a {contest} at the {p}, and {n} practised every day.",
            ),
            (
                "{day}, everyone came to watch. {A_ghero} named {g} was the first and {did} very well.",
                "{day}, it began. First it was the turn of {a_ghero} named {g}, who {did} very well.",
            ),
            (
                "\nThen it was the turn of {n}. {n} was so nervous that nothing worked.",
                "\nThen everyone looked at {n}. {His} heart beat fast, and {n} wanted to run away.",
            ),
            (
                '"Breathe in and think of something nice," whispered {g}. So {n} tried again.',
                '"You can do it, {n}!" called {g}. {n} took a deep breath and tried again.',
            ),
            (
                "This time {n} {did} better than ever before, and everyone clapped.",
                "And then {n} {did} so well that all the others cheered.",
            ),
            (
                "{n} won {a_qo}, and {g} was the first to say well done.",
                "Both of them won a prize. {n} took {a_qo} home and thanked {g}.",
            ),
        ),
    ),
    "wish": (
        (
            "Write a short story about {a_kind} named {n} who finds a magic {o}.",
            "Tell me a story about {a_kind} and a magic {o}.",
            "A story about a wish, with {a_kind}, please.",
            "Write a fairy tale about {a_hero} and a magic {o}.",
            "Tell a short story in which {n} the {kind} has one wish.",
        ),
        (
            (
                "{day}, {n} found {a_qo} {spot}. When {n} touched it, it began to shine.",
                "{day}, {a_qo} lay {spot}. {n} picked it up, and it was warm and bright.",
            ),
            (
                '"I am a magic {o}," said a small voice. "You have one wish."',
                'Then the {o} began to speak. "I am magic, and I give you one wish," it said.',
            ),
            (
                "\n{n} thought about {foods}, and {n} thought about a crown of gold. But then {n} thought of {g} the {gkind}.",
                "\n{n} could have asked for anything in the world. But {n} thought of {g} the {gkind}.",
            ),
            (
                '{g} was ill and had to stay in bed. "I wish that {g} is well again," said {n}.',
                '{g} had been ill for {num} days. "Please make {g} well again," said {n}.',
            ),
            (
                "At once {g} jumped out of bed and danced. The {o} never shone again, but {n} did not mind.",
                'The {o} shone once more, and {g} could run again. "You are a real friend, {n}," said {g}.',
            ),
        ),
    ),
}

# Prompts that leave the plot open: the story takes any of the plots named.
OPEN_PROMPTS: dict[str, tuple[str, ...]] = {
    "animal": (
        "Tell me a story about {a_kind}.",
        "Write a short story about {a_hero}.",
        "Write a story about {a_kind} named {n}.",
        "Make up a short story with {a_hero} named {n}.",
        "Tell a story for small children about {a_kind}.",
        "Give me a short story about {n} the {kind}.",
        "Write a short tale about {a_kind} and {a_gkind}.",
    ),
    "child": (
        "Tell me a story about a {child} named {n}.",
        "Write a short story about a {child} named {n} and {a_o}.",
        "Write a story about {n}, {a_hero}.",
        "Make up a story for children about a {child} named {n}.",
        "Tell a short story about a {child} named {n} and {his} friend {g}.",
        "Write a little story with a happy ending about {n}.",
    ),
    "any": (
        "Tell me a story.",
        "Write a short story.",
        "Write a story for small children.",
        "Make up a story, any story.",
        "Tell me a short story with a happy ending.",
        "Give me a little story.",
        "Tell me something nice to read.",
    ),
    "moral": (
        "Write a short story about {moral}.",
        "Tell me a story about {moral}.",
        "Write a story about {moral} with {a_kind} named {n}.",
        "Make up a short story about {moral}. The hero is {a_hero}.",
        "Tell a story for children about {moral}.",
        "Give me a story about {moral} and {a_kind}.",
    ),
}
