"""Word tables of the news domain: event kinds with their sentences by role, and the words that fill them.

In a template `{slot}` is a word drawn once per report, `{a slot}` the same with its article, `[lo-hi/step]` a number.
Only the lead (through its date) and the number sentences hold digits: that is the rule by which a summary is made.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Event:
    """One kind of event. `numbers` pairs a sentence with the question it answers; `who` is the name a right answer repeats."""

    name: str
    group: str
    subject: tuple[str, ...]
    did: tuple[str, ...]  # fits "<subject> <did> in <town> on <day>."
    topic: str
    ask: str
    numbers: tuple[tuple[str, str], ...]
    details: tuple[str, ...]
    quotes: tuple[str, ...]
    outlook: tuple[str, ...]
    words: dict[str, tuple[str, ...]] = field(default_factory=dict)
    jobs: tuple[str, ...] = ()
    who: str = ""  # empty: the subject
    mishap: bool = False


def _w(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(","))


WEEKDAYS = _w("Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday")
DAY_PARTS = _w("morning, afternoon, evening")
MONTHS = _w("January, February, March, April, May, June, July, August, September, October, November, December")

COMMON: dict[str, tuple[str, ...]] = {
    "first": _w(
        "Harbour, Hillside, Riverside, Lakeside, Northgate, Southgate, Westfield, Eastfield, Old Mill, Oak Street,"
        " Silver Birch, Green Valley,"
        " Blue Lantern, Red Gate, Castle Hill, Stone Bridge, Willow, Cedar Grove, Maple Lane, Elm Court, Rose Hill, Sunrise, Evening Star,"
        " Lighthouse, Clock Tower, Town Square, Chapel Hill, Fox Hollow, Heron Bay, Swan Lake, Kingfisher, Falcon,"
        " Meadow View, Orchard Road,"
        " North Point, Anchor, Compass, Beacon, Milestone, Windmill, Watermill, High Moor, Low Meadow, Long Acre,"
        " Broad Oak, Ash Tree, Pine Ridge,"
        " Holly Bank, Ivy House, Juniper, Hazel Wood, Linden, Poplar, Chestnut, Walnut Grove, Copper Kettle, Golden Gate, Crystal Spring,"
        " Sandy Cove, Pebble Beach, Cliff Top, Summit, Valley Road, Canal Side, Dockyard, Hill Road, Abbey, Priory,"
        " Bishop Street, Queen Street"
    ),
    "street": tuple(
        f"{a} {b}"
        for a in _w(
            "Mill, Church, Bridge, Station, Market, River, Garden, Park, Castle, School, Forest, Chapel,"
            " Orchard, Tower, Harbour, Meadow"
        )
        for b in _w("Road, Lane, Street")
    ),
    "money": _w("euros, dollars, pounds"),
    "month": MONTHS,
    "next": (
        *(f"in {m}" for m in MONTHS), "next week", "next month", "next year", "next spring", "next summer", "next autumn", "next winter",
        "after the holidays", "before the end of the year", "in the coming weeks", "at the end of the month",
    ),
    "crowd": _w("visitors, residents, local people, guests"),
    "food": _w("soup, tea and cake, fresh bread, warm pies, lemonade, hot chocolate, apple juice, pancakes, grilled corn, ginger biscuits"),
    "weather": _w("bright sunshine, light rain, a cool breeze, a clear sky, soft morning fog, a gentle wind, warm weather, grey clouds"),
    "band": _w("brass band, school choir, folk group, drum group, string quartet, jazz trio, pipe band, youth orchestra"),
}

# Quotes that fit any event of the mood; most events add their own.
GLAD_QUOTES = (
    "This is a proud day for all of us",
    "We have waited for this for a long time",
    "I am so happy that everyone worked together",
    "Nobody here will forget this day",
    "It was wonderful to see so many smiling faces",
    "We could not have done it without our neighbours",
    "Good things happen when people help each other",
    "I have never seen anything like it in our town",
    "The whole team deserves our thanks",
    "My children will talk about this for weeks",
    "It shows what a small town can do",
    "We started with nothing but a good idea",
    "I could hardly believe my eyes",
    "I laughed, I cried and I clapped until my hands hurt",
)
MISHAP_QUOTES = (
    "We are just glad that everyone is safe",
    "It all happened very quickly",
    "The neighbours came to help at once",
    "We stayed calm and followed the plan",
    "I have lived here all my life and never saw this before",
    "People helped wherever they could",
    "We thank the crews for their hard work",
    "It could have been much worse",
    "Everyone was patient and kind",
    "We will clean up together",
)
JOBS = _w(
    "teacher, nurse, baker, farmer, librarian, shopkeeper, gardener, carpenter, plumber, mail carrier, student,"
    " retired sailor, bus driver, painter,"
    " volunteer, local guide, architect, town clerk, tailor, musician, waiter, florist, mechanic, dentist,"
    " optician, journalist, electrician,"
    " beekeeper, angler, cook, cleaner, caretaker, translator, photographer, potter, weaver, bookseller, vet, pharmacist, accountant"
)

EVENTS: tuple[Event, ...] = (
    Event(
        "opening", "town",
        ("the {first} Trust", "the {first} Foundation", "the {first} Community Group"),
        ("opened a new {venue}", "opened a new {venue} on {street}", "opened a {look} new {venue}"),
        "the opening of a new {venue}", "Who opened the new {venue}?",
        (
            ("The {venue} cost [20-950/5],000 {money} to build", "How much did the {venue} cost?"),
            ("About [60-900/10] {crowd} came to the first day", "How many people came to the first day?"),
            ("The {venue} has room for [30-400/10] visitors", "How many visitors does the {venue} have room for?"),
        ),
        (
            "A {band} played outside the front door", "Visitors were given {food}",
            "The walls are decorated with paintings by local artists", "The old building had been empty for years",
        ),
        ("The {venue} is bright, warm and open to everyone", "A town needs places where people can meet"),
        ("The trust wants to add a small garden {next}", "Free tours will be offered {next}", "Evening courses will begin there {next}"),
        {
            "venue": _w(
                "library, swimming pool, youth club, playground, health centre, sports hall, cinema, theatre, reading room,"
                " skate park, music school,"
                " community kitchen, repair workshop, art gallery, climbing hall, tea house, visitor centre, day nursery,"
                " ice rink, training centre"
            ),
            "look": _w("bright, modern, large, small, beautiful, colourful, cosy, wooden"),
        },
        _w("librarian, architect, teacher, volunteer"),
    ),
    Event(
        "storm", "nature",
        ("a {strong} storm", "a {strong} wind"),
        ("damaged the {part} of the {first} {house}", "tore off part of the {part} of the {first} {house}"),
        "a storm that damaged the {first} {house}", "What damaged the {first} {house}?",
        (
            ("The wind reached [80-140] kilometres an hour", "How fast was the wind?"),
            ("The repairs will cost about [5-90],000 {money}", "How much will the repairs cost?"),
            ("More than [12-90] trees were blown down", "How many trees were blown down?"),
        ),
        (
            "Branches and leaves covered the streets", "Several cars were hit by falling tiles",
            "Shops closed early and people stayed indoors", "The rain flooded cellars near the river",
        ),
        ("The noise was as loud as a train", "We held the door shut with a table"),
        ("Builders hope to finish the repairs {next}", "The building should open again {next}", "Experts expect calmer weather {next}"),
        {
            "strong": _w("violent, heavy, strong, sudden, fierce, powerful, severe"),
            "part": _w("roof, tin roof, front wall, main gate, glass roof, chimney, porch"),
            "house": _w("School, Hotel, Hospital, Church, Theatre, Museum, Station, Library, Farm, Factory"),
        },
        _w("builder, caretaker, firefighter"), "the {first} {house}", True,
    ),
    Event(
        "match", "culture",
        ("the {first} {side}",),
        ("won a {sport} match against the {rival} {side2}", "beat the {rival} {side2} in a {kind} {sport} match"),
        "a {sport} match won by the {first} {side}", "Who won the {sport} match?",
        (
            ("The final score was [4-9] to [0-3]", "What was the final score?"),
            ("The game was watched by [2-9],[100-990/10] fans", "How many fans watched the game?"),
            ("The winning goal came after [20-58] minutes", "After how many minutes did the winning goal come?"),
        ),
        (
            "The visitors had played well before the break", "The field was wet after a night of rain",
            "The goalkeeper made several brave saves", "Fans sang and waved scarves until the end",
        ),
        ("The players never gave up", "We ran until our legs hurt", "Training hard has paid off"),
        (
            "The team will play its next match {next}",
            "The final of the cup will be played {next}",
            "The coach hopes to find new players {next}",
        ),
        {
            "sport": _w("football, hockey"),
            "side": _w("Rovers, Wanderers, Tigers, Eagles, Rangers, Lions, Wolves, Hawks"),
            "side2": _w("Bears, Giants, Sharks, Dragons, Panthers, Comets, Pirates, Stallions"),
            "rival": _w("Northern, Southern, Eastern, Western, Royal, Central, Mountain, Island, Coastal, Highland"),
            "kind": _w("tense, friendly, thrilling, fast, close, lively"),
        },
        _w("coach, trainer, goalkeeper, team captain"),
    ),
    Event(
        "festival", "culture",
        ("the {first} Society", "the {first} Arts Club", "the {first} Village Group"),
        ("held {a feast} festival", "held the yearly {feast} festival", "hosted a lively {feast} festival"),
        "{a feast} festival", "Who held the {feast} festival?",
        (
            ("About [300-4800/100] {crowd} came to the festival", "How many people came to the festival?"),
            ("The festival had [20-95] stalls with food and crafts", "How many stalls did the festival have?"),
            ("The festival earned [2-40],[100-900/50] {money} for the hospital", "How much did the festival earn?"),
        ),
        (
            "Children painted their faces and danced in the square", "The {band} played from a wooden stage",
            "The streets were hung with paper lanterns", "The smell of {food} filled the air",
        ),
        ("Our festival grows every year", "The music kept my feet moving all day"),
        ("The next festival is planned {next}", "Pictures of the day will be shown in the town hall {next}"),
        {
            "feast": _w(
                "lantern, kite, apple, cherry, strawberry, pumpkin, cheese, honey, flower, puppet, dance, film, book, boat,"
                " tea, bread, mask,"
                " street music, poetry, chestnut, fish, tulip, lavender, potato, juggling, balloon, sand castle"
            ),
        },
        _w("dancer, cook, puppeteer, potter"),
    ),
    Event(
        "election", "town",
        ("the {first} {club}",),
        ("elected {name} as its new {post}", "chose {name} as its new {post}"),
        "the election of {name} as {post} of the {first} {club}", "Who was elected by the {first} {club}?",
        (
            ("The winner received [41-95] of [96-160] votes", "How many votes did the winner receive?"),
            ("A total of [40-190] members took part in the vote", "How many members took part in the vote?"),
            ("The club now has [60-480] members", "How many members does the club have?"),
        ),
        (
            "The meeting took place in a crowded hall", "The former {post} stepped down for health reasons",
            "The votes were counted by hand", "There was loud applause after the result",
        ),
        ("We need fresh ideas and open doors", "It was a fair and friendly vote"),
        ("The new {post} will begin work {next}", "The club will present its plans {next}"),
        {
            "club": _w(
                "Rowing Club, Chess Club, Garden Club, Hiking Club, Sailing Club, Singing Club, Cycling Club, Photo Club, Reading Club,"
                " Swimming Club, Tennis Club"
            ),
            "post": _w("chair, treasurer, secretary, president, captain"),
        },
        _w("club member, coach, treasurer"), "{name}",
    ),
    Event(
        "harvest", "nature",
        ("farmers of the {first} Cooperative", "growers of the {first} Farm", "workers of the {first} Estate"),
        ("brought in a record harvest of {crop}", "celebrated the best {crop} harvest in years"),
        "a record harvest of {crop}", "Who had a great harvest of {crop}?",
        (
            ("The fields gave [120-980/5] tonnes of {crop}", "How many tonnes did the fields give?"),
            ("The harvest was [12-60] percent larger than last year", "How much larger was the harvest?"),
            ("More than [25-180/5] helpers worked in the fields", "How many helpers worked in the fields?"),
        ),
        (
            "A wet spring and a warm summer had helped the plants", "Tractors worked from dawn until dark",
            "The barns are full to the roof", "Part of the crop was given to schools and kitchens",
        ),
        ("The soil has been kind to us", "We filled every basket that we own"),
        ("The farm will sell the {crop} at the market {next}", "A harvest dinner will be held {next}"),
        {
            "season": _w("August, September, October"),
            "crop": _w(
                "wheat, barley, oats, apples, pears, plums, potatoes, carrots, onions, cabbages, grapes, cherries, pumpkins, beans,"
                " peas, olives, rye, maize, tomatoes, walnuts"
            ),
        },
        _w("farmer, miller, fruit picker, tractor driver"),
    ),
    Event(
        "bridge", "town",
        ("workers of the {first} Company", "engineers of the {first} Company", "builders of the {first} Company"),
        ("finished the repair of the {span} bridge", "reopened the {span} bridge after long repairs"),
        "the repair of the {span} bridge", "Who repaired the {span} bridge?",
        (
            ("The repair took [3-18] months", "How long did the repair take?"),
            ("The work cost [80-980/10],000 {money}", "How much did the work cost?"),
            ("The bridge is [24-240/2] metres long", "How long is the bridge?"),
        ),
        (
            "Old beams were replaced with new steel", "Cyclists were the first to cross",
            "Drivers had used a long detour through the hills", "The railings were painted {paint}",
        ),
        ("The way to work is short again", "The bridge will stand for many years"),
        ("New lamps will be fitted {next}", "Experts will inspect the bridge {next}"),
        {
            "span": _w("old stone, wooden, iron, railway, narrow river, covered, harbour, canal, mill, hanging, arched"),
            "paint": _w("green, white, dark blue, red, grey, yellow"),
        },
        _w("engineer, welder, lorry driver, cyclist"),
    ),
    Event(
        "rescue", "nature",
        ("the {first} Rescue Team", "a crew of the {first} Rescue Service"),
        ("saved {victim} from {peril}", "rescued {victim} from {peril}"),
        "the rescue of {victim} from {peril}", "Who rescued {victim}?",
        (
            ("The rescue took [20-170/5] minutes", "How long did the rescue take?"),
            ("A group of [6-38] helpers took part in the rescue", "How many helpers took part?"),
            ("The crew needed [40-240/5] metres of rope", "How much rope did the crew need?"),
        ),
        (
            "A passer-by had heard a cry for help", "Strong lamps lit up the place",
            "A doctor checked everyone at once", "Nobody was hurt, but everyone was cold and tired",
        ),
        ("We practise for days like this", "I knew that they would come"),
        ("The team will hold a training day {next}", "Warning signs will be put up {next}"),
        {
            "victim": _w(
                "a hiker, a young climber, a lost child, a fisherman, a group of pupils, a horse, a cow, an old dog, a swimmer,"
                " a pair of sailors, a walker, a family"
            ),
            "peril": _w(
                "a flooded field, a deep ditch, a steep cliff, a frozen lake, a fast river, a dark cave, a muddy marsh, a sinking boat,"
                " a small island"
            ),
        },
        _w("diver, climber, mountain guide, paramedic"), "", True,
    ),
    Event(
        "award", "culture",
        ("{name}, {a craft},",),
        ("received the {first} Award for {merit}", "won the {first} Award for {merit}"),
        "an award for {name}, {a craft}", "Who won the {first} Award?",
        (
            ("The prize is worth [1-20],[100-900/100] {money}", "How much is the prize worth?"),
            ("The winner was chosen from [24-300] people", "From how many people was the winner chosen?"),
            ("The work behind the prize took [2-30] years", "How many years did the work take?"),
        ),
        (
            "The ceremony took place in a hall full of flowers", "The jury praised the patience of the winner",
            "Friends and relatives rose and clapped", "The {band} played between the speeches",
        ),
        ("The prize could not have gone to a better person", "My hands were shaking on the stage"),
        ("A book about the winners will appear {next}", "The winner will give a talk {next}"),
        {
            "craft": _w(
                "potter, painter, poet, writer, violinist, nurse, scientist, teacher, gardener, chef, weaver, photographer, clockmaker,"
                " sculptor, inventor, actor, engineer, glassblower"
            ),
            "merit": _w(
                "courage, fine craft, service to the town, lifelong work, kindness, new ideas, care for nature, work with children,"
                " teamwork"
            ),
        },
        _w("jury member, critic, professor"), "{name}",
    ),
    Event(
        "bus", "town",
        ("the {first} Bus Company", "the {first} Transport Company"),
        ("started a new {buskind} bus line", "started a new {buskind} bus line to the {stop}"),
        "a new {buskind} bus line", "Who started the new bus line?",
        (
            ("The buses leave every [10-60/5] minutes", "How often do the buses leave?"),
            ("The line has [8-36] stops", "How many stops does the line have?"),
            ("About [200-950/10] passengers use the buses each day", "How many passengers use the buses each day?"),
        ),
        (
            "The buses have wide doors and low steps", "Drivers handed out maps and sweets to passengers",
            "People on the edge of town had asked for better transport", "Rides on the first day were free",
        ),
        ("I can leave my car at home now", "My way to work is so much easier"),
        ("Sunday trips will be added {next}", "New shelters will be built {next}"),
        {
            "buskind": _w("night, express, electric, school, weekend, tourist, ring, airport"),
            "stop": _w("hospital, railway station, harbour, university, beach, zoo, castle, stadium, airport"),
        },
        _w("bus driver, commuter, mechanic"),
    ),
    Event(
        "school", "culture",
        ("pupils of the {first} School", "students of the {first} School", "a class of the {first} School"),
        ("built {a device} for a school project", "presented {a device} made from scrap", "finished {a device} for the school garden"),
        "a school project about {a device}", "Who made the {device}?",
        (
            ("The project took [4-30] weeks", "How many weeks did the project take?"),
            ("A total of [11-64] children worked on the project", "How many children worked on the project?"),
            ("The material cost only [15-190/5] {money}", "How much did the material cost?"),
        ),
        (
            "The children measured, sawed and painted every part", "Parents had brought old tools and boxes",
            "The first model fell apart, so the class began again", "A local workshop lent the tools",
        ),
        ("The children learned more than from any book", "We made mistakes and then we fixed them"),
        ("The class will show its work at a fair {next}", "Other schools can visit {next}"),
        {
            "device": _w(
                "weather station, solar oven, wooden robot, small telescope, bird hotel, rain barrel, model railway,"
                " insect house, wind wheel, electric cart,"
                " water filter, raft, greenhouse, sundial, pinhole camera, marble run, hot-air balloon, radio set, compost machine"
            ),
        },
        _w("science teacher, pupil, headteacher, parent"),
    ),
    Event(
        "exhibition", "culture",
        ("the {first} Museum", "the {first} Gallery"),
        ("opened an exhibition of {exhibit}", "began to show a large collection of {exhibit}"),
        "an exhibition of {exhibit}", "Who is showing the {exhibit}?",
        (
            ("The show includes [40-900/5] pieces", "How many pieces does the show include?"),
            ("A ticket costs [3-18] {money}", "How much does a ticket cost?"),
            ("The oldest piece is [110-900/5] years old", "How old is the oldest piece?"),
        ),
        (
            "Many pieces had been found in attics and cellars", "Soft lamps protect the fragile objects",
            "Children can touch and try some of the copies", "Each room tells a different story",
        ),
        ("Every object has a story to tell", "I could have stayed for hours"),
        ("Guided tours will be held {next}", "The collection will move to another city {next}"),
        {
            "exhibit": _w(
                "old maps, clocks, glass animals, wooden toys, silver coins, masks, musical instruments, ship models, hats,"
                " kites, stamps, typewriters, fossils,"
                " landscape paintings, posters, teapots, carpets, photographs, swords, butterflies, dolls, bicycles, lamps,"
                " shoes, radios, puppets, quilts"
            ),
        },
        _w("curator, historian, collector, art teacher"),
    ),
    Event(
        "concert", "culture",
        ("the {first} {players}",),
        ("gave a concert of {tunes}", "played an evening of {tunes}", "performed a concert of {tunes} for charity"),
        "a concert of {tunes}", "Who gave the concert?",
        (
            ("The hall was filled with [120-980/10] listeners", "How many listeners were there?"),
            ("The concert raised [1-9],[100-950/50] {money} for the hospital", "How much did the concert raise?"),
            ("The group played [9-26] pieces", "How many pieces did the group play?"),
        ),
        (
            "The soloist was cheered again and again", "Candles stood along the stage",
            "Listeners stood up and sang the last song together", "The musicians had practised since the summer",
        ),
        ("The last song gave me goosebumps", "Music brings a town together"),
        ("A recording will be sold {next}", "The group will go on tour {next}"),
        {
            "players": _w("Orchestra, Choir, Quartet, Brass Band, Jazz Band, Chamber Group, Guitar Trio, Singers"),
            "tunes": _w(
                "film music, folk songs, old dances, love songs, sea songs, waltzes, spring songs, lullabies, marches, jazz tunes,"
                " winter songs, tangos"
            ),
        },
        _w("conductor, singer, piano teacher, violinist"),
    ),
    Event(
        "fire", "nature",
        ("a fire", "a {fierce} fire", "a kitchen fire"),
        ("damaged the {first} {firehouse}", "broke out at the {first} {firehouse}"),
        "a fire at the {first} {firehouse}", "What happened at the {first} {firehouse}?",
        (
            ("A crew of [12-70] firefighters put out the flames", "How many firefighters put out the flames?"),
            ("The damage is put at [10-400/5],000 {money}", "How high is the damage?"),
            ("All [8-90] people in the building got out unhurt", "How many people got out of the building?"),
        ),
        (
            "Thick smoke could be seen from the hills", "A faulty cable may have been the cause",
            "Neighbours offered beds and warm clothes", "The street was closed until the evening",
        ),
        ("The alarm woke us in time", "The crew was here before we had counted heads"),
        ("The building will be repaired {next}", "A report on the cause is expected {next}"),
        {
            "fierce": _w("large, small, sudden, fierce, smoky"),
            "firehouse": _w("Hotel, Restaurant, Warehouse, Bakery, Sawmill, Factory, Inn, Workshop, Laundry, Barn"),
        },
        _w("fire chief, firefighter, cook, hotel guest"), "the {first} {firehouse}", True,
    ),
    Event(
        "pet", "nature",
        ("{name}, {a finder},",),
        ("found a lost {pet} in {hideout}", "brought home a missing {pet} from {hideout}"),
        "a lost {pet} found by {name}", "Who found the lost {pet}?",
        (
            ("The {pet} had been missing for [3-60] days", "For how long had the {pet} been missing?"),
            ("The owner paid a reward of [20-300/10] {money}", "How high was the reward?"),
            ("The {pet} was [2-9] kilometres from home", "How far from home was the {pet}?"),
        ),
        (
            "The animal was thin and tired, but healthy", "The owner had put up posters in every street",
            "A small tag on the collar showed the address", "Children had searched the parks every day after school",
        ),
        ("I only followed a strange little noise", "I hugged the animal and cried for joy"),
        ("The {pet} will visit a vet {next}", "The owner will thank the helpers with a party {next}"),
        {
            "finder": _w("mail carrier, gardener, pupil, student, baker, train driver, park keeper, farmer, painter, roofer, nurse"),
            "pet": _w("cat, dog, parrot, rabbit, tortoise, pony, ferret, kitten, puppy, goose, hamster"),
            "hideout": _w(
                "a garden shed, an empty barn, a hollow tree, a delivery van, a boathouse, a cellar, a bus shelter, a greenhouse,"
                " an old tower, a hay cart"
            ),
        },
        _w("vet, animal keeper, pet owner"), "{name}",
    ),
    Event(
        "bakery", "town",
        ("the {sur} Bakery", "the {sur} Family Bakery"),
        ("celebrated its anniversary with {a cake}", "marked its birthday with {a cake}"),
        "the anniversary of the {sur} Bakery", "Who celebrated an anniversary?",
        (
            ("The bakery has been open for [15-150/5] years", "For how many years has the bakery been open?"),
            ("The bakers gave away [150-950/10] free rolls", "How many free rolls did the bakers give away?"),
            ("The cake was cut into [80-600/10] pieces", "Into how many pieces was the cake cut?"),
        ),
        (
            "The line of guests reached around the corner", "Old photographs of the shop hung in the window",
            "The oven was built by the grandfather of the owner", "Children were allowed to shape their own rolls",
        ),
        ("I have bought my bread here since I was a child", "Good bread needs time and warm hands"),
        ("The family will open a second shop {next}", "A book of recipes will be printed {next}"),
        {
            "cake": _w(
                "giant cherry cake, tall chocolate cake, huge apple cake, round lemon cake, big honey cake, long carrot cake,"
                " large cream cake, tall walnut cake, giant almond cake, big plum cake, huge poppy seed cake"
            ),
        },
        _w("baker, pastry cook, loyal customer, miller"),
    ),
    Event(
        "charity", "culture",
        ("runners of the {first} Running Club", "members of the {first} Sports Club"),
        ("ran for the {cause}", "took part in a charity run for the {cause}"),
        "a charity run for the {cause}", "Who ran for the {cause}?",
        (
            ("The run raised [2-60],[100-950/50] {money}", "How much did the run raise?"),
            ("The route was [5-42] kilometres long", "How long was the route?"),
            ("A total of [80-900/5] runners reached the finish", "How many runners reached the finish?"),
        ),
        (
            "Volunteers handed out water and bananas", "Some runners wore funny costumes",
            "The route led through parks and along the water", "People rang bells at the side of the road",
        ),
        ("Every step was for a good cause", "My legs are tired, but my heart is glad"),
        ("The money will be handed over {next}", "The next run will take place {next}"),
        {
            "cause": _w(
                "children's hospital, animal shelter, food bank, fire station, old people's home, local library, school garden,"
                " lifeboat crew, town museum, youth centre, wildlife park, blind school"
            ),
        },
        _w("runner, doctor, race official"),
    ),
    Event(
        "snow", "nature",
        ("heavy snow", "deep snow", "a sudden snowfall"),
        ("closed the {first} {snowplace}", "stopped all traffic at the {first} {snowplace}"),
        "a snowfall that closed the {first} {snowplace}", "What closed the {first} {snowplace}?",
        (
            ("About [15-95] centimetres of snow fell overnight", "How much snow fell overnight?"),
            ("The temperature dropped to minus [4-24] degrees", "How low did the temperature drop?"),
            ("A team of [6-60] workers cleared the roads", "How many workers cleared the roads?"),
        ),
        (
            "Children built snowmen in the parks", "Snow ploughs worked through the night",
            "Icicles hung from every roof", "Neighbours dug out cars together",
        ),
        ("I could not even open my front door", "We have tea, candles and time"),
        ("Warmer air is expected {next}", "The town will buy a second snow plough {next}"),
        {
            "next": ("next week", "at the end of the month", "before the end of the winter", "in the coming weeks"),
            "season": _w("December, January, February"),
            "snowplace": _w("School, Airport, Railway Station, Factory, Shopping Centre, Stadium, College, Bus Station, Harbour"),
        },
        _w("plough driver, shepherd, ski teacher"), "the {first} {snowplace}", True,
    ),
    Event(
        "trees", "nature",
        ("volunteers of the {first} Green Group", "members of the {first} Nature Club"),
        ("planted young {tree} trees", "planted rows of {tree} trees along {street}"),
        "the planting of {tree} trees", "Who planted the {tree} trees?",
        (
            ("The helpers planted [40-950/5] trees in all", "How many trees did the helpers plant?"),
            ("The work took [3-11] hours", "How many hours did the work take?"),
            ("Each tree may grow [8-35] metres tall", "How tall may each tree grow?"),
        ),
        (
            "The ground was soft after days of rain", "Each tree carries the name of a child",
            "Families came with spades, gloves and buckets", "The young trees came from a nursery nearby",
        ),
        ("Our grandchildren will sit in the shade", "A tree is a gift to the future"),
        ("The trees will be watered by schools {next}", "A new path will be laid between the trees {next}"),
        {
            "tree": _w(
                "oak, birch, maple, cherry, apple, lime, pine, willow, chestnut, ash, beech, rowan, alder, larch, plane, pear, hazel,"
                " cedar"
            ),
        },
        _w("forester, gardener, biology teacher"),
    ),
    Event(
        "market", "town",
        ("traders of the {first} Market", "stallholders of the {first} Market"),
        ("moved to {newplace}", "moved the {mkind} market to {newplace}"),
        "the move of the {first} Market to {newplace}", "Who moved to {newplace}?",
        (
            ("The new site has [24-160] stalls", "How many stalls does the new site have?"),
            ("The move cost [8-95],000 {money}", "How much did the move cost?"),
            ("The walk from the old site takes [3-20] minutes", "How long is the walk from the old site?"),
        ),
        (
            "The old square had become too small", "Carts and vans rolled through the town before sunrise",
            "Shoppers found fruit, fish, cloth and flowers", "Some customers lost their way and asked for help",
        ),
        ("There is more light and more space", "I miss the old place, but I like the new one"),
        ("The old square will become a park {next}", "A roof will be built over the stalls {next}"),
        {
            "mkind": _w("weekly, daily, fish, flower, farmers', craft, book, spice"),
            "newplace": _w(
                "the old harbour, the station yard, the castle park, a former factory, the river bank, the church square,"
                " a covered hall, the old fairground"
            ),
        },
        _w("fishmonger, greengrocer, cheesemonger, florist"),
    ),
    Event(
        "science", "nature",
        ("researchers of the {first} Institute", "scientists of the {first} Institute", "a team of the {first} University"),
        ("discovered {find}", "reported the discovery of {find}"),
        "the discovery of {find}", "Who discovered {find}?",
        (
            ("The team had searched for [2-19] years", "For how many years had the team searched?"),
            ("The study was based on [60-980/10] samples", "On how many samples was the study based?"),
            ("The project cost [40-900/10],000 {money}", "How much did the project cost?"),
        ),
        (
            "The first hint came from an old notebook", "The work was done with a simple microscope",
            "The result was checked by other groups", "Students had helped to collect the data",
        ),
        ("At first I thought it was a mistake", "Science needs patience and good eyes"),
        ("The study will be published {next}", "The team will return to the site {next}"),
        {
            "find": _w(
                "a rare moss, a new kind of beetle, the bones of an ancient whale, a hidden spring, a Roman well,"
                " a small comet, a blue mushroom, a forgotten tunnel,"
                " a new species of orchid, a giant fossil fern, the nest of a rare owl, a cave with old drawings,"
                " a useful bacterium, a glowing jellyfish, a lost village"
            ),
        },
        _w("biologist, geologist, professor, lab assistant"),
    ),
    Event(
        "ferry", "town",
        ("the {first} Ferry Company", "the {first} Shipping Company"),
        ("launched a new ferry called the {ship}", "put the new ferry {ship} into service"),
        "the new ferry {ship}", "Who launched the new ferry?",
        (
            ("The ship carries [60-480/10] passengers", "How many passengers does the ship carry?"),
            ("The crossing takes [15-95/5] minutes", "How long does the crossing take?"),
            ("A single ticket costs [2-15] {money}", "How much does a single ticket cost?"),
        ),
        (
            "The engine runs quietly on batteries", "A bottle of juice was broken on the bow",
            "The ship is painted in white and blue", "Small boats followed with flags and horns",
        ),
        ("She glides like a swan", "The islanders can visit us at last"),
        ("Evening trips will begin {next}", "A second ship will be built {next}"),
        {
            "ship": _w(
                "Sea Lily, Morning Star, Silver Gull, Northern Light, Blue Heron, Island Queen, Happy Wave, River Rose, Golden Fin,"
                " White Cloud, Bright Pearl, Brave Otter, Ocean Song, Swift Tern"
            ),
        },
        _w("ship captain, sailor, deckhand, island farmer"),
    ),
    Event(
        "power", "nature",
        ("a power cut", "a long power cut", "a sudden power cut"),
        ("stopped work at the {first} {powerplace}", "left the {first} {powerplace} in the dark"),
        "a power cut at the {first} {powerplace}", "What happened at the {first} {powerplace}?",
        (
            ("The power was off for [2-19] hours", "For how many hours was the power off?"),
            ("About [200-990/10] homes had no light", "How many homes had no light?"),
            ("A crew of [4-40] electricians repaired the line", "How many electricians repaired the line?"),
        ),
        (
            "A broken cable under the street was to blame", "People lit candles and played cards",
            "Traffic lights failed and police directed the cars", "A cafe gave away ice cream before it melted",
        ),
        ("We told stories in the dark", "My old radio still works with batteries"),
        ("The old cables will be replaced {next}", "The company will explain the fault {next}"),
        {"powerplace": _w("Hospital, Cinema, Factory, Hotel, School, Shopping Centre, Theatre, Dairy, Brewery, Station")},
        _w("electrician, engineer, lift mechanic"), "the {first} {powerplace}", True,
    ),
    Event(
        "strike", "town",
        ("workers of the {first} {firm}", "drivers of the {first} {firm}", "staff of the {first} {firm}"),
        ("ended a strike over {issue}", "ended a long strike over {issue}"),
        "the end of a strike over {issue}", "Who ended the strike?",
        (
            ("The strike had lasted [4-45] days", "How many days had the strike lasted?"),
            ("Wages will rise by [2-12] percent", "By how much will wages rise?"),
            ("More than [60-900/10] people return to work", "How many people return to work?"),
        ),
        (
            "The talks went on through the night", "Both sides shook hands and smiled",
            "Supporters had brought {food} to the gates", "A retired judge had led the talks",
        ),
        ("We are glad to go back to work", "Both sides had to listen"),
        ("The new contract will be signed {next}", "Normal service will return {next}"),
        {
            "firm": _w(
                "Shipyard, Tram Company, Paper Mill, Steel Works, Dairy, Bus Company, Glass Factory, Brewery, Post Office, Toy Factory"
            ),
            "issue": _w("wages, working hours, night shifts, holidays, safety, pensions, breaks, overtime"),
        },
        _w("union leader, manager, shift leader"),
    ),
    Event(
        "road", "town",
        ("the {first} Road Office", "the {first} Road Service", "police from the {first} Station"),
        ("closed {street} because of {trouble}", "closed part of {street} after {trouble}"),
        "the closing of {street}", "Who closed {street}?",
        (
            ("The detour is [2-25] kilometres long", "How long is the detour?"),
            ("The road will stay closed for [3-40] days", "For how long will the road stay closed?"),
            ("About [200-950/10] drivers use the road each day", "How many drivers use the road each day?"),
        ),
        (
            "Yellow signs show the way around the site", "Buses take another route",
            "Shopkeepers fear that customers will stay away", "Children enjoyed the quiet street and played football",
        ),
        ("I had to turn around and start again", "Please drive slowly and follow the signs"),
        ("The road should open again {next}", "New asphalt will be laid {next}"),
        {
            "trouble": _w(
                "a burst water pipe, a gas leak, a deep hole, a landslide, a fallen tree, a flood, a broken sewer, a damaged wall,"
                " an oil spill"
            ),
        },
        _w("road worker, police officer, taxi driver, lorry driver"), "", True,
    ),
    Event(
        "garden", "nature",
        ("neighbours of the {first} Garden Club", "members of the {first} Garden Club"),
        ("turned an empty {waste} into a garden", "opened a shared garden on the site of {a waste}"),
        "a new shared garden on an old {waste}", "Who made the new garden?",
        (
            ("The garden has [12-90] beds for vegetables", "How many beds does the garden have?"),
            ("The helpers carried [20-300/5] bags of soil", "How many bags of soil did the helpers carry?"),
            ("The seeds and tools cost [150-990/10] {money}", "How much did the seeds and tools cost?"),
        ),
        (
            "Herbs and sunflowers grow along the fence", "Benches were made from old doors",
            "Bees and butterflies have already moved in", "The soil had to be cleaned first",
        ),
        ("I grew my first radish here", "The garden makes strangers into friends"),
        ("The first vegetables will be shared {next}", "A pond for frogs will be dug {next}"),
        {
            "waste": _w(
                "car park, coal yard, school yard, rubbish site, tennis court, petrol station, factory yard, building site, bus depot,"
                " timber yard"
            ),
        },
        _w("gardener, beekeeper, cook"),
    ),
    Event(
        "play", "culture",
        ("the {first} Theatre Group", "actors of the {first} Theatre"),
        ("performed a play about {hero}", "showed a new play about {hero}"),
        "a play about {hero}", "Who performed the play?",
        (
            ("The play was seen by [90-900/10] people", "How many people saw the play?"),
            ("The cast had [6-40] actors", "How many actors did the cast have?"),
            ("The show lasted [55-170/5] minutes", "How many minutes did the show last?"),
        ),
        (
            "The costumes were sewn from old curtains", "The lights went out for a moment, but the actors carried on",
            "The audience laughed, sighed and clapped", "A painted forest served as the stage",
        ),
        ("I forgot that I was in a theatre", "I was nervous until the first laugh"),
        ("The group will perform in other towns {next}", "The play will be shown again {next}"),
        {
            "hero": _w(
                "a shy king, a lost sailor, a clever fox, a brave weaver, a lonely giant, a talking clock, a forgetful wizard,"
                " a poor miller, a proud peacock, a kind thief, a sleepless queen, a flying tailor, a singing cobbler"
            ),
        },
        _w("actor, director, stage painter, costume maker"),
    ),
    Event(
        "chess", "culture",
        ("{name}, {a player},",),
        ("won the {first} {game} tournament", "won the final of the {first} {game} tournament"),
        "the {first} {game} tournament won by {name}", "Who won the {first} {game} tournament?",
        (
            ("The tournament had [16-190/2] players", "How many players did the tournament have?"),
            ("The final game lasted [35-240/5] minutes", "How long did the final game last?"),
            ("The winner took home [50-900/10] {money}", "How much did the winner take home?"),
        ),
        (
            "The room was so quiet that a clock could be heard", "The last move surprised everyone in the room",
            "The players shook hands after a friendly talk", "The youngest player was still in primary school",
        ),
        ("I saw the winning move at the last second", "The loser smiled and asked for another game"),
        ("The next tournament will begin {next}", "A course for beginners will start {next}"),
        {
            "game": _w("chess, card, draughts, darts, table tennis, quiz, dominoes, billiards"),
            "player": _w("student, baker, nurse, plumber, retired judge, pupil, engineer, librarian, tailor, taxi driver, sailor"),
        },
        _w("referee, trainer, club member"), "{name}",
    ),
    Event(
        "zoo", "nature",
        ("the {first} Zoo", "the {first} Animal Park"),
        ("welcomed a newborn {cub}", "presented a newborn {cub} to the public"),
        "a newborn {cub}", "Who presented the newborn {cub}?",
        (
            ("The {cub} drinks [2-9] bottles of milk a day", "How many bottles of milk does the {cub} drink?"),
            ("More than [300-990/10] visitors came to see the {cub}", "How many visitors came to see the {cub}?"),
            ("The park is home to [60-700/5] animals", "How many animals live in the park?"),
        ),
        (
            "The mother stayed close and watched every step", "The little animal drank milk and fell asleep",
            "Children lined up with drawings in their hands", "The keepers had slept beside the stable",
        ),
        ("The first steps were shaky but brave", "My daughter wants to take it home"),
        ("Visitors may vote for a name {next}", "A larger enclosure will be ready {next}"),
        {
            "cub": _w(
                "giraffe, zebra, camel, tiger, elephant, bison, seal, gorilla, panda, lynx, llama, rhino, moose, kangaroo, wolf, otter,"
                " tapir, antelope"
            ),
        },
        _w("zookeeper, vet, biologist"),
    ),
    Event(
        "record", "culture",
        ("cooks of the {first} Restaurant", "members of the {first} Cooking Club"),
        ("made the largest {dish} of the year", "set a record with a giant {dish}"),
        "a record attempt with a giant {dish}", "Who made the giant {dish}?",
        (
            ("The {dish} weighed [90-950/10] kilograms", "How much did the {dish} weigh?"),
            ("The {dish} fed [200-980/10] guests", "How many guests did the {dish} feed?"),
            ("The work in the kitchen took [5-30] hours", "How many hours did the work take?"),
        ),
        (
            "A crane was needed to lift the pan", "A judge measured every side with a tape",
            "The ingredients came from farms nearby", "Nothing was left at the end of the day",
        ),
        ("I stirred with an oar from a boat", "It tasted even better than it looked"),
        ("The cooks will try a new record {next}", "The pan will be shown in the museum {next}"),
        {
            "dish": _w(
                "pizza, omelette, pancake, apple pie, vegetable soup, sandwich, fruit salad, lasagne, potato salad, cheesecake,"
                " dumpling, bean stew, waffle, trifle"
            ),
        },
        _w("chef, waiter, judge, farmer"),
    ),
)
