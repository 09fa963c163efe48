"""The words that every domain of the corpus shares: names, places and things, with their plurals and articles."""

from __future__ import annotations

import random
from typing import NamedTuple


class Person(NamedTuple):
    """A first name with its pronouns."""

    name: str
    he: str
    him: str
    his: str


def _list(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word.strip() for word in text.replace("\n", ",").split(",") if word.strip()))


def _words(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text.split()))


GIRLS = _words("""
Ada Adele Agnes Aisha Alba Alice Alicia Alina Alma Amara Amber Amelia Amina Amy Ana Anita Anna Annie Anya April Ariel Arya Asha
Astrid Audrey Ava Beatrice Becky Bella Beth Bianca Bonnie Brenda Bridget Camila Carla Carmen Carol Cecilia Celia Chara Chloe
Clara Claire Cleo Cora Dahlia Daisy Dana Daphne Daria Dawn Deborah Delia Diana Dina Dora Doris Edith Eileen Elena Elisa Eliza Ella
Ellen Elodie Elsa Elsie Emilia Emily Emma Erika Esme Esther Eva Eve Evelyn Faith Fatima Faye Fern Fiona Flora Florence Freda Freya
Frida Gemma Georgia Gina Gloria Grace Greta Gwen Hana Hannah Harriet Hazel Heather Heidi Helen Helga Hilda Holly Hope Ida Ines
Ingrid Irene Iris Isabel Isla Ivy Jane Janet Jasmine Jean Jenna Jenny Jessica Jill Joan Joanna Jodie Josie Joy Judith Julia June
Kamala Karen Karin Kate Katia Kayla Keiko Kendra Kezia Kiara Kim Kira Kirsty Lara Laura Layla Lea Leah Leila Lena Leona Leticia
Lila Lily Linda Lisa Liv Lola Lorna Lottie Louisa Lucia Lucy Luna Lydia Mabel Maddie Maeve Maggie Maisie Malia Mandy Mara Margot
Maria Marie Marina Marta Martha Mary Matilda Maud Maya Megan Mei Melanie Mia Mila Millie Mina Mira Miriam Molly Mona Monica Myra
Nadia Naomi Nancy Natalie Nell Nia Nina Nora Noor Odette Olga Olive Olivia Opal Paloma Pamela Patty Paula Pearl Penny Petra Phoebe
Pia Polly Poppy Priya Rachel Renata Rhea Rita Robin Rosa Rosalie Rose Rowena Ruby Ruth Sabrina Sadie Sally Salma Sandra Sara Selma
Serena Shona Sienna Silvia Simone Sofia Sonia Stella Susan Suki Sunita Sylvie Tabitha Talia Tamara Tania Tara Tess Thea Tilda Tina
Uma Ursula Valerie Vera Vicky Viola Violet Wanda Wendy Willa Willow Winnie Xenia Yara Yasmin Yoko Yvonne Zara Zelda Zoe Zora
""")

BOYS = _words("""
Aaron Abel Adam Adrian Ahmed Aidan Akira Alan Albert Alec Alfie Alvin Amir Amos Anders Andre Andrew Anton Archie Arjun Arlo Arne
Arthur Arturo Asher Austin Axel Barney Barry Basil Ben Benito Bernard Bert Bill Bjorn Blake Bob Boris Brad Brendan Brian Bruce
Bruno Bryn Caleb Calvin Carl Carlos Cedric Cesar Charlie Chester Chris Clark Claude Clive Colin Conor Craig Cyril Dale Damian Dan
Daniel Darius Dave David Dean Dennis Derek Desmond Diego Dirk Dmitri Dominic Donald Douglas Duncan Dylan Eddie Edgar Edmund Edwin
Eli Elias Elliot Elmer Emil Enzo Eric Ernest Ethan Evan Ezra Fabian Felipe Felix Finn Floyd Frank Fred Gabriel Gareth Gary Gavin
Geoff George Gerald Gilbert Glen Gordon Graham Grant Greg Gus Guy Hakim Hank Hans Harold Harry Harvey Hassan Hector Henry Herbert
Herman Hiro Howard Hugh Hugo Ian Ibrahim Idris Igor Imran Isaac Ivan Ivor Jack Jacob Jake Jamal James Jamie Jan Jared Jason Javier
Jeff Jeremy Jerome Jesse Jim Joel John Jonas Jonathan Jorge Joseph Josh Juan Julian Justin Kai Karim Karl Keith Kenji Kenneth Kevin
Kurt Kyle Lars Laurence Leo Leon Leonard Leroy Leslie Lewis Liam Lionel Lloyd Logan Louis Luca Lucas Luis Luke Malcolm Manuel Marco
Marcus Mario Mark Martin Mateo Matthew Max Maxim Melvin Michael Miguel Miles Milo Mohan Morgan Morris Moses Nathan Ned Neil Nelson
Nicholas Nick Nigel Niko Nils Noah Noel Norman Oleg Oliver Omar Oscar Otis Otto Owen Pablo Patrick Paul Pedro Percy Perry Peter Phil
Pierre Quentin Rafael Raj Ralph Ramon Raul Ravi Ray Reuben Rex Ricardo Richard Rob Roberto Roger Roland Roman Ron Rory Ross Roy Rufus
Rupert Russell Ryan Salim Sam Samir Samuel Scott Sean Sebastian Seth Sidney Simon Stanley Stefan Steve Stuart Sven Tariq Ted Terence
Theo Thomas Tim Toby Todd Tom Tony Travis Trevor Tyler Umar Victor Vikram Vince Walter Warren Wayne Wilbur Will Yusuf Zack Zane
""")

SURNAMES = _words("""
Abbott Adams Adler Ahmed Aldridge Allen Alvarez Andrews Appleby Archer Armstrong Arnold Ashby Atkins Austen Bailey Baird Baker Baldwin
Banks Barlow Barnes Barrett Barton Bates Baxter Beck Bell Bennett Benson Berg Berry Bird Bishop Blackwood Blair Bloom Bolton Bond
Booth Bowen Bowman Boyd Bradley Brady Brandt Bridges Briggs Brooks Brown Bryant Buckley Burgess Burke Burns Burton Bush Butler Byrne
Calder Cameron Campbell Carlson Carpenter Carr Carson Carter Castillo Chambers Chan Chandler Chapman Chavez Chen Church Clayton Cohen
Cole Coleman Collins Conway Cook Cooper Costa Cox Craven Crawford Cross Cruz Curtis Dalton Davies Dawson Day Delgado Diaz Dixon
Dobson Donovan Doyle Drake Duarte Dudley Duffy Dunn Eaton Edwards Ellis Emerson Evans Farmer Farrell Faulkner Ferguson Fernandez Fields
Finch Fisher Fleming Fletcher Flores Forbes Ford Foster Fowler Fox Fraser Freeman French Frost Fuller Gallagher Garcia Gardner Garner
Gibbs Gibson Giles Glover Goddard Gomez Goodwin Gould Graves Gray Green Greer Griffin Gupta Haines Hale Hall Hamilton Hammond Hansen
Harding Harper Harris Hart Hawkins Hayes Heath Henderson Hicks Higgins Hill Hobbs Hodges Holland Holmes Holt Hooper Hopkins Horton
Hudson Hughes Hunt Hunter Hurley Ibarra Ingram Irwin Jackson Jacobs Jansen Jarvis Jenkins Jennings Jensen Johnson Jones Joyce Kaur
Keller Kelly Kemp Kennedy Kent Khan Kim King Kirby Klein Knight Kowalski Lamb Lambert Lane Larsen Lawson Leach Lee Lindgren Little
Lloyd Long Lopez Lowe Lucas Lynch Lyons Mackenzie Malone Mann Manning Marsh Marshall Mason Maxwell Mayer McBride McCarthy McDonald
McKay Mendez Mercer Meyer Miles Miller Mills Mitchell Monroe Montgomery Moore Morales Moreno Morris Morton Moss Mueller Murphy Murray
Nash Navarro Neal Newman Newton Nguyen Nolan Norris Novak Nunez Oakley Okafor Olsen Ortega Osborne Owens Page Palmer Parker Parsons
Patel Patterson Payne Pearce Perez Perkins Perry Petersen Phillips Pierce Pope Porter Potter Powell Pratt Price Quinn Ramirez Ramsey
Randall Reed Reeves Reid Reyes Reynolds Rhodes Rice Richards Riley Rivera Roberts Robinson Rogers Romero Ross Rossi Rowe Russell Ryan
Sanders Santos Saunders Sawyer Schmidt Schneider Scott Sharp Shaw Shepherd Silva Simmons Singh Skinner Slater Sloan Smith Snow Spencer
Stone Sullivan Sutton Swanson Tanaka Taylor Thompson Thornton Tucker Turner Underwood Vance Vargas Vaughn Vega Wagner Walker Wallace
Walsh Walton Ward Warner Watkins Watson Watts Weaver Webb Weber Welch Wells Weston Wheeler White Wilcox Wilkins Williams Winters Wong
Wood Wright Yamada Yates Young Zimmer
""")

_TOWN_HEADS = _words("""
Alder Amber Apple Ash Barn Beck Birch Black Bram Brook Castle Cherry Clay Cold Copper Cran Dun Eagle Elm Fair Fern Fox Glen Gold
Green Hart Hazel Heather Holly Iron Kings Lake Lang Lin Maple Marl May Mill North Oak Pine Raven Red River Rose Silver Stan
Stone Thorn Wind
""")
_TOWN_TAILS = ("ford", "bury", "dale", "field", "wick", "ton", "mere", "bridge", "port", "haven")
# Every head with five of the ten tails: 250 towns, none of them listed by hand.
TOWNS = tuple(head + _TOWN_TAILS[(i + 2 * j) % 10] for i, head in enumerate(_TOWN_HEADS) for j in range(5))

ANIMALS = _list("""
alpaca, ant, antelope, armadillo, baboon, badger, bat, bear, beaver, bee, beetle, bison, blackbird, bull, butterfly, camel, canary, cat
cheetah, chicken, chipmunk, cow, crab, cricket, crocodile, crow, deer, dog, dolphin, donkey, dove, dragonfly, duck, eagle, elephant
falcon, ferret, finch, flamingo, fox, frog, gecko, gerbil, giraffe, goat, goose, gorilla, guinea pig, gull, hamster, hare, hawk
hedgehog, hen, heron, hippo, horse, iguana, jackal, jaguar, kangaroo, kingfisher, kitten, koala, ladybird, lamb, lemur, leopard, lion
lizard, llama, lobster, lynx, magpie, mole, monkey, moose, mouse, newt, octopus, ostrich, otter, owl, panda, panther, parrot, peacock
pelican, penguin, pig, pigeon, pony, porcupine, puffin, puppy, rabbit, raccoon, raven, reindeer, rhino, robin, salamander, seal, sheep
skunk, sloth, snail, sparrow, spider, squirrel, stork, swallow, swan, tiger, toad, tortoise, toucan, turkey, turtle, walrus, weasel
whale, wolf, wombat, woodpecker, yak, zebra
""")

FOODS = _list("""
apple, apricot, artichoke, avocado, bagel, banana, bean, beetroot, berry, biscuit, blackberry, blueberry, bread roll, brownie, bun
burger, burrito, cabbage, cake, candy, caramel, carrot, cashew, cauliflower, cheesecake, cherry, chestnut, chocolate bar, clementine
coconut, cookie, corn cob, cracker, cranberry, cream puff, crepe, croissant, crumpet, cucumber, cupcake, currant, custard tart, date
doughnut, dumpling, eclair, egg, energy bar, falafel, fig, fish cake, fritter, fruit tart, gherkin, grape, grapefruit, green bean
hazelnut, hot dog, ice lolly, jam tart, kebab, kiwi, leek, lemon, lettuce, lime, loaf, lollipop, lychee, macaroon
mandarin, mango, marshmallow, meatball, melon, meringue, mince pie, mint, muffin, mushroom, nectarine, noodle, nut, oat bar, olive
omelette, onion, orange, pancake, papaya, parsnip, pastry, pea, peach, peanut, pear, pepper, pickle, pie, pineapple, pistachio, pizza
plum, pomegranate, popsicle, potato, pretzel, prune, pumpkin, quiche, radish, raisin, raspberry, samosa, sandwich, satsuma
sausage, scone, shortcake, spring roll, strawberry, sugar lump, sweet, sweet potato, taco, tangerine, toffee, tomato, tortilla, truffle
turnip, waffle, walnut, watermelon, wrap
""")

OBJECTS = _list("""
alarm clock, album, anchor, apron, armchair, arrow, backpack, badge, bag, ball, balloon, bandage, banjo, banner, barrel, basin, basket
bathtub, bead, bed, bell, belt, bench, bib, bicycle, blanket, blender, board, boat, bolt, book, bookmark, boot, bottle, bow, bowl, box
bracelet, brick, briefcase, broom, brush, bucket, bulb, button, cabinet, cable, cage, calculator, calendar, camera, candle, cane, canoe
canvas, cap, car, card, carpet, cart, chain, chair, chalkboard, chart, chessboard, chest, clip, clock, cloth, coat, coin, collar, comb
compass, cooler, cot, couch, crate, crayon, crown, cup, cupboard, curtain, cushion, desk, diary, dictionary, dish, doll, door, doormat
drawer, dress, drill, drum, duster, easel, envelope, eraser, fan, feather, fence, fiddle, file, flag, flask, flowerpot, flute, folder
fork, frame, fridge, funnel, garland, gate, glass, globe, glove, goblet, guitar, hairbrush, hammer, hammock, handbag, handle, hanger
harp, hat, helmet, hook, hoop, horn, hose, jacket, jar, jersey, jewel, jug, jumper, kettle, key, keyboard, kite, knife, ladder, ladle
lamp, lampshade, lantern, laptop, lawnmower, leaflet, lens, letter, lever, lid, locket, log, loom, magazine, magnet, map, marble, mask
mat, match, mattress, medal, mirror, mitten, mixer, model plane, mop, mug, nail, napkin, necklace, needle, net, newspaper, notebook
notepad, oar, oven glove, paddle, padlock, pail, paintbrush, painting, pan, paper bag, parasol, parcel, peg, pen, pencil, pendant
penknife, photo, piano, picture, pillow, pin, pipe, pitcher, plank, plant pot, plate, plug, pocket watch, postcard, poster, pot, pouch
printer, puppet, purse, puzzle, quilt, racket, radio, raft, rake, razor, recorder, ribbon, ring, robe, rocket, roller skate, rope, rug
ruler, sack, saddle, sail, sandal, saucepan, saucer, saw, scarf, scooter, screen, screw, screwdriver, seashell, seat, shawl, sheet
shelf, shell, shield, shirt, shoe, shoebox, shovel, sieve, sign, skateboard, sketchbook, skirt, sled, slipper, snow globe, soap dish
sock, sofa, spade, spanner, spinning top, sponge, spoon, spring, stamp, stapler, stick, sticker, stocking, stone, stool, string bag
suitcase, sundial, sweater, swing, table, tablecloth, tambourine, tape measure, teacup, teapot, teddy bear, telescope, tent, thermometer
thimble, ticket, tie, tile, timer, tin, toolbox, toothbrush, torch, towel, toy car, toy train, tray, tricycle, trolley, trophy, trumpet
trunk, tub, tyre, ukulele, umbrella, vase, vest, violin, waistcoat, wallet, wand, wardrobe, watch, watering can, wheel, wheelbarrow
whisk, whistle, wig, windmill, wooden spoon, wreath, xylophone, yo-yo, zip
""")

# Every place reads well after "at the".
PLACES = _list("""
airport, aquarium, art gallery, bakery, bank, barn, beach, book fair, bookshop, bowling alley, bridge, bus station, bus stop, butcher shop
cafe, campsite, canal, canteen, car park, castle, church, cinema, circus, city hall, clinic, clubhouse, college, community centre
concert hall, corner shop, cottage, crossroads, dairy, dance school, dock, factory, fairground, farm, fire station, fish market
flea market, florist, flower shop, football ground, fountain, garden centre, golf club, gym, harbour, hardware store, health centre
hospital, hotel, ice rink, inn, jetty, laboratory, lake, launderette, library, lighthouse, market, mill, museum, music school, nursery
office, palace, park, petrol station, pet shop, pharmacy, playground, police station, pond, port, post office, quarry, railway station
restaurant, riding school, river, school, seaside, shoe shop, shopping centre, skate park, sports centre, stable, stadium, street market
studio, supermarket, swimming pool, temple, tennis court, theatre, town hall, toy shop, train station, university, village hall
vineyard, warehouse, waterfall, water park, windmill, workshop, youth club, zoo
""")

COLOURS = _list("""
red, blue, green, yellow, orange, purple, pink, brown, black, white, grey, golden, silver, violet, turquoise, crimson, scarlet, navy
lilac, beige, cream, maroon, teal, indigo, copper, bronze, olive, amber, lavender, peach, ruby, emerald
""")

JOBS = _list("""
accountant, actor, architect, artist, astronaut, athlete, author, baker, banker, barber, beekeeper, biologist, blacksmith, bookseller
bricklayer, builder, bus driver, butcher, caretaker, carpenter, cashier, chef, chemist, cleaner, clerk, clown, coach, cobbler, conductor
cook, courier, dancer, decorator, dentist, designer, detective, diver, doctor, drummer, economist, editor, electrician, engineer, farmer
firefighter, fisher, florist, gardener, geologist, glazier, goldsmith, grocer, guard, guide, hairdresser, historian, inventor, janitor
jeweller, joiner, journalist, judge, juggler, lawyer, lecturer, librarian, lifeguard, locksmith, magician, manager, mayor, mechanic
miller, miner, musician, nurse, optician, painter, park ranger, pharmacist, photographer, physicist, pianist, pilot, plumber, poet
police officer, porter, potter, printer, producer, programmer, receptionist, reporter, roofer, sailor, scientist, sculptor, secretary
shepherd, shoemaker, shopkeeper, singer, soldier, surgeon, surveyor, tailor, taxi driver, teacher, technician, tiler, toymaker
train driver, translator, tutor, typist, vet, violinist, waiter, watchmaker, weaver, welder, window cleaner, writer, zookeeper
""")

# TRAITS fit a person or an animal, QUALITIES fit a thing.
TRAITS = _list("""
active, adventurous, alert, bashful, bold, bouncy, brave, bright, busy, calm, careful, caring, cautious, charming, chatty, cheeky
cheerful, clever, clumsy, confident, cosy, courageous, courteous, creative, curious, daring, dreamy, eager, earnest, easy-going
energetic, excited, fair, faithful, fearless, fluffy, forgetful, friendly, funny, generous, gentle, giggly, glad, good, graceful
grateful, greedy, grumpy, happy, hardworking, helpful, honest, hopeful, humble, hungry, impatient, jolly, joyful, kind, lively, lonely
loving, loyal, lucky, merry, mischievous, modest, neat, nervous, observant, outgoing, practical, punctual, relaxed, reliable, respectful
resourceful, nimble, noisy, patient, peaceful, playful, pleasant, plucky, polite
proud, quick, quiet, sensible, serious, shy, silly, sleepy, slow, small, smart, sociable, speedy, spirited, steady, strong, stubborn
sweet, tall, thoughtful, tidy, tiny, tired, trusty, warm-hearted, wise, witty, young, zany
""")
QUALITIES = _list("""
ancient, beautiful, bent, big, broken, bumpy, cheap, clean, cold, colourful, crooked, curved, damp, dark, deep, dented, dirty, dry
dusty, elegant, empty, enormous, expensive, faded, fancy, flat, fragile, fresh, full, glittering, glossy, hard, heavy, hollow, huge
large, light, little, long, lovely, magic, modern, narrow, new, odd, old, ordinary, painted, patched, patterned, perfect, plain
pocket-sized, polished, pretty, rare, rough, round, rusty, shabby, sharp, shiny, short, simple, smooth, soft, sparkling, spotted
square, strange, striped, sturdy, tall, tasteful, tattered, thick, thin, torn, useful, valuable, warm, wavy, wide, wobbly, wooden
woollen, worn
""")
ADJECTIVES = tuple(dict.fromkeys(TRAITS + QUALITIES))

_IRREGULAR = {
    "calf": "calves",
    "deer": "deer",
    "fish": "fish",
    "goose": "geese",
    "knife": "knives",
    "leaf": "leaves",
    "loaf": "loaves",
    "moose": "moose",
    "mouse": "mice",
    "penknife": "penknives",
    "reindeer": "reindeer",
    "scarf": "scarves",
    "sheep": "sheep",
    "shelf": "shelves",
    "wolf": "wolves",
    "bison": "bison",
    "child": "children",
    "person": "people",
    "man": "men",
    "woman": "women",
    "foot": "feet",
    "tooth": "teeth",
    "thief": "thieves",
    "half": "halves",
    "wife": "wives",
    "life": "lives",
    "elf": "elves",
    "potato": "potatoes",
    "tomato": "tomatoes",
    "mango": "mangoes",
    "hero": "heroes",
    "echo": "echoes",
    "quiz": "quizzes",
    "crossroads": "crossroads",
    "series": "series",
    "aircraft": "aircraft",
    "canvas": "canvases",
    "gas": "gases",
}
_SOUNDS_A = ("uni", "use", "usu", "ute", "uku", "eu", "one", "once")
_SOUNDS_AN = ("hour", "honest", "honour", "heir")
_STARTS_AN = ("unin", "unim", "unint")


def plural(noun: str) -> str:
    """The plural of a noun; of several words the last one changes."""
    head, _, last = noun.rpartition(" ")
    if last in _IRREGULAR:
        last = _IRREGULAR[last]
    elif last.endswith(("s", "x", "z", "ch", "sh")):
        last += "es"
    elif last.endswith("y") and last[-2:-1] not in "aeiou":
        last = last[:-1] + "ies"
    else:
        last += "s"
    return f"{head} {last}" if head else last


def a(noun: str) -> str:
    """The words with their indefinite article: "an apple", "a unicorn", "an honest vet"."""
    low = noun.lower()
    if low.startswith(_SOUNDS_AN) or low.startswith(_STARTS_AN):
        return f"an {noun}"
    if low.startswith(_SOUNDS_A):
        return f"a {noun}"
    return f"an {noun}" if low[0] in "aeiou" or low[:2] in ("8 ", "11", "18") else f"a {noun}"


def person(rng: random.Random) -> Person:
    """A girl or a boy, drawn evenly."""
    if rng.random() < 0.5:
        return Person(rng.choice(GIRLS), "she", "her", "her")
    return Person(rng.choice(BOYS), "he", "him", "his")
