"""The word tables of the chat domain: small talk, and what lies outside the topics of the model."""

from __future__ import annotations


def _list(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word.strip() for word in text.replace("\n", ",").split(",") if word.strip()))


# Fit "what is ...", "tell me about ...", "explain ...".
TOPICS = _list("""
gravity, photosynthesis, inflation, quantum mechanics, evolution, electricity, magnetism, democracy, capitalism, socialism, philosophy
psychology, sociology, anthropology, astronomy, astrology, chemistry, biology, physics, geology, algebra, geometry, calculus, statistics
probability, trigonometry, relativity, thermodynamics, nuclear fusion, nuclear energy, solar power, wind power, climate change
global warming, air pollution, recycling, biodiversity, deforestation, agriculture, architecture, archaeology, economics, the economy
the stock market, the blockchain, cryptocurrency, artificial intelligence, machine learning, deep learning, a neural network
cloud computing, cybersecurity, encryption, a database, an operating system, the internet, Wi-Fi, Bluetooth, a computer virus, DNA, RNA
a protein, an atom, a molecule, an electron, a proton, a neutron, a black hole, a galaxy, a comet, an asteroid, a supernova
the solar system, the Big Bang, the Moon, the Sun, Mars, Venus, Jupiter, Saturn, Neptune, Pluto, the Milky Way, the universe, dark matter
dark energy, a volcano, an earthquake, a tsunami, a hurricane, a tornado, a glacier, the ozone layer, the water cycle, the carbon cycle
the Roman Empire, ancient Egypt, ancient Greece, the Middle Ages, the Renaissance, the French Revolution, the Industrial Revolution
the Cold War, the First World War, the Second World War, the Viking Age, the Aztec Empire, the Inca Empire, the Ottoman Empire
the Silk Road
the Great Wall of China, the Eiffel Tower, the Colosseum, the Taj Mahal, the Great Pyramid, Stonehenge, Mount Everest, the Amazon rainforest
the Sahara, the Great Barrier Reef, the Pacific Ocean, the Nile, Mont Blanc, Kilimanjaro, Antarctica, the North Pole, the equator
Buddhism, Christianity, Hinduism, Islam, Judaism, Taoism, Stoicism, existentialism, ethics, logic, free will, consciousness, karma
impressionism, cubism, surrealism, modern art, jazz, opera, ballet, rock music, hip hop, classical music, techno, poetry, drama
Shakespeare, the Odyssey, the Bible, Greek mythology, Norse mythology, chess, poker
Formula One, the World Cup, yoga, meditation, a marathon, a vaccine, an antibiotic, a virus, a bacterium, cancer, diabetes
asthma, malaria, influenza, the immune system, the heart, the liver, the brain, the nervous system, digestion, cholesterol, insulin
vitamin C, vitamin D, caffeine, alcohol, protein powder, a mortgage, a pension, a bond, a share, a tax return, compound interest
bankruptcy, insurance, a credit score, a contract, copyright, a patent, a trademark, the constitution, parliament, a senate
a referendum, NATO, the United Nations, the European Union, the World Bank, Brexit, a tariff, a recession, unemployment, globalisation
a microchip, a transistor, a laser, a satellite, a rocket engine, a jet engine, a diesel engine, an electric car, a hybrid car, a drone
a submarine, a microscope, an X-ray, an MRI scan, a 3D printer, a solar panel, a battery, a heat pump, a nuclear reactor, a power plant
radar, sonar, GPS, plastic, steel, aluminium, concrete, oxygen, hydrogen, carbon, helium, nitrogen, uranium, gold mining
the periodic table, an acid, a chemical bond, osmosis, mitosis, a cell, a chromosome, a fossil, a dinosaur, the Ice Age, a mammoth
coral, plankton, pollination, migration, hibernation, camouflage, symbiosis, the food chain, a prime number, pi, infinity, a fractal
the golden ratio, a matrix, a logarithm, an integral, a derivative, game theory, Linux, Windows, Android, Kubernetes, Docker, Git, HTML
CSS, SQL, an API, a compiler, a web browser, a search engine, social media, a podcast, Bitcoin, Ethereum, an NFT, phishing, spam
string theory, the greenhouse effect, the speed of light, the human eye, the human body, blood pressure, a stroke, a tornado warning
erosion
plate tectonics, the Richter scale, a solar eclipse, a hydrogen bomb, radioactivity
a quark
general relativity, the uncertainty principle, quantum physics, quantum computing, entropy, the Turing test, big data, the metaverse, 5G
ChatGPT, a large language model, blockchain technology, robotics, nanotechnology, genetics, cloning, gene therapy, nutrition
a keto diet, intermittent fasting, mindfulness, hypnosis, psychoanalysis, dyslexia, autism, feminism, colonialism, apartheid, slavery
the plague, feudalism, the Magna Carta, the Enlightenment, the Space Race
the Vatican, Mecca, the Koran, the Torah, baroque music, gothic architecture, pop art, manga, hip hop culture, the blues
supply and demand, a hedge fund, a start-up, marketing, logistics, law, medicine, engineering
""")
DEVICES = _list("""
airbag, aeroplane, air conditioner, battery, bicycle gear, car engine, carburettor, compass, computer, copier, credit card, dishwasher
drone, dynamo, elevator, fridge, fuse, generator, gearbox, gas boiler, guitar amplifier, gyroscope, hard disk, hearing aid, heat pump
helicopter, jet engine, laser, lie detector, light bulb, lock, loudspeaker, magnet, metal detector, microphone, microscope, microwave oven
motor, pacemaker, parachute, pendulum clock, phone, piano, power station, printer, projector, pump, quartz watch, radar, radio
remote control
robot arm, rocket, router, satellite, scanner, sewing machine, smoke detector, solar panel, spectrometer, steam engine, submarine
telephone, telescope, television, thermometer, thermostat, toaster, touch screen, traffic light, transformer, transistor, turbine
typewriter
vacuum cleaner, vending machine, washing machine, water filter, wind turbine, X-ray machine, zip
""")
FAMOUS = _list("""
Napoleon, Julius Caesar, Cleopatra, Alexander the Great, Marie Curie, Albert Einstein, Isaac Newton, Galileo Galilei, Charles Darwin
Nikola Tesla, Thomas Edison, Leonardo da Vinci, Michelangelo, Vincent van Gogh, Pablo Picasso, Claude Monet, Frida Kahlo, Mozart
Beethoven, Bach, Chopin, Elvis Presley, John Lennon, David Bowie, Freddie Mercury, Madonna, Bob Marley, William Shakespeare, Jane Austen
Charles Dickens, Mark Twain, Homer, Dante, Goethe, Tolstoy, Dostoevsky, Kafka, Plato, Socrates, Aristotle, Confucius, Kant, Nietzsche
Gandhi, Nelson Mandela, Martin Luther King, Abraham Lincoln, George Washington, Winston Churchill, Queen Victoria, Joan of Arc
Genghis Khan, Marco Polo, Christopher Columbus, Magellan, James Cook, Amelia Earhart, Neil Armstrong, Yuri Gagarin, Ada Lovelace
Alan Turing, Grace Hopper, Stephen Hawking, Louis Pasteur, Florence Nightingale, Sigmund Freud, Karl Marx, Adam Smith, Archimedes, Euclid
Pythagoras, Euler, Gauss, Emmy Noether, Walt Disney, Charlie Chaplin, Alfred Hitchcock, Pele, Muhammad Ali, Roger Federer
Taylor Swift, Beyonce, Michael Jackson, Elton John, Adele, Rihanna, Lady Gaga, Eminem, Justin Bieber, Ed Sheeran, Bob Dylan, Jimi Hendrix
Lionel Messi, Cristiano Ronaldo, Diego Maradona, Michael Jordan, LeBron James, Serena Williams, Usain Bolt, Tiger Woods, Lewis Hamilton
Elon Musk, Bill Gates, Steve Jobs, Jeff Bezos, Mark Zuckerberg, Sam Altman, Donald Trump, Joe Biden, Barack Obama, Angela Merkel
Emmanuel Macron, Vladimir Putin, Margaret Thatcher, King Charles, Queen Elizabeth, the Dalai Lama, Pope Francis, Mother Teresa, Che Guevara
Tom Hanks, Brad Pitt, Leonardo DiCaprio, Meryl Streep, Marilyn Monroe, Audrey Hepburn, Keanu Reeves, Emma Watson, Steven Spielberg
Agatha Christie, Ernest Hemingway, George Orwell, Stephen King, Hans Christian Andersen, Oscar Wilde, Virginia Woolf, Emily Dickinson
Harry Potter, Sherlock Holmes, Batman, Spider-Man, Superman, Robin Hood, King Arthur, Mickey Mouse, James Bond, Santa Claus, Zeus, Thor
Donald Knuth, Linus Torvalds, Tim Berners-Lee, Noam Chomsky, Richard Feynman, Niels Bohr, Max Planck, Johannes Kepler, Copernicus
""")
COUNTRIES = _list("""
Argentina, Australia, Austria, Belgium, Bolivia, Brazil, Bulgaria, Cambodia, Canada, Chile, China, Colombia, Croatia, Cuba, Denmark
Ecuador, Egypt, Estonia, Ethiopia, Finland, France, Germany, Ghana, Greece, Hungary, Iceland, India, Indonesia, Ireland, Israel, Italy
Jamaica, Japan, Jordan, Kenya, Latvia, Lebanon, Malaysia, Mali, Mexico, Mongolia, Morocco, Nepal, New Zealand, Nigeria, Norway, Pakistan
Panama, Peru, Poland, Portugal, Romania, Senegal, Serbia, Singapore, Slovakia, Slovenia, Somalia, South Africa, South Korea, Spain, Sudan
Sweden, Switzerland, Thailand, Tunisia, Turkey, Uganda, Ukraine, Uruguay, Vietnam, Zambia
the USA, England, Scotland, Wales, the Netherlands, Russia, Iran, Iraq, Saudi Arabia, Qatar, Cyprus, Malta, Luxembourg, Albania, Belarus
Georgia
Armenia, Azerbaijan, Kazakhstan, Uzbekistan, Afghanistan, Bangladesh, Sri Lanka, Laos, Taiwan, North Korea, the Philippines, Fiji, Samoa
Algeria, Libya, Angola, Namibia, Botswana, Zimbabwe, Tanzania, Rwanda, Cameroon, Madagascar, Mozambique, Costa Rica, Guatemala, Honduras
Nicaragua, Haiti, the Dominican Republic, Venezuela, Paraguay, Guyana, Lithuania, Moldova, Montenegro, North Macedonia, Bosnia, Yemen, Oman
the Czech Republic, the United Kingdom, the United States, Great Britain, Syria, Kuwait, Myanmar, Bhutan, Papua New Guinea, Greenland
""")
CITIES = _list("""
Amsterdam, Athens, Bangkok, Barcelona, Beijing, Berlin, Boston, Brussels, Budapest, Cairo, Chicago, Copenhagen, Delhi, Dubai, Dublin
Edinburgh, Geneva, Hamburg, Hanoi, Helsinki, Istanbul, Jakarta, Lagos, Lima, Lisbon, London, Madrid, Melbourne, Milan, Montreal, Moscow
Mumbai, Munich, Nairobi, New York, Oslo, Paris, Prague, Rome, San Francisco, Seoul, Shanghai, Stockholm, Sydney, Tokyo, Toronto, Vienna
Warsaw, Zurich
Los Angeles, Miami, Seattle, Denver, Houston, Dallas, Philadelphia, Washington, Las Vegas, New Orleans, Vancouver, Mexico City, Havana
Bogota
Rio de Janeiro, Buenos Aires, Santiago, Manchester, Liverpool, Glasgow, Cardiff, Belfast, Bristol, Leeds, Lyon, Marseille, Nice, Bordeaux
Cologne, Frankfurt, Stuttgart, Dresden, Leipzig, Bremen, Hanover, Zagreb, Belgrade, Sofia, Bucharest, Kiev, Riga, Tallinn, Vilnius, Minsk
Venice, Florence, Naples, Turin, Seville, Valencia, Porto, Basel, Salzburg, Krakow, Bergen, Gothenburg, Reykjavik, Ankara, Tehran, Baghdad
Jerusalem, Tel Aviv, Beirut, Doha, Riyadh, Karachi, Lahore, Kolkata, Chennai, Bangalore, Singapore, Kuala Lumpur, Manila, Hong Kong, Osaka
Kyoto, Perth, Brisbane, Auckland, Wellington, Cape Town, Johannesburg, Accra, Dakar, Tunis, Casablanca, Addis Ababa, Kigali
""")
LANGUAGES = _list("""
Arabic, Bengali, Chinese, Czech, Danish, Dutch, Finnish, French, German, Greek, Hebrew, Hindi, Hungarian, Italian, Japanese, Korean, Latin
Norwegian, Persian, Polish, Portuguese, Romanian, Russian, Spanish, Swahili, Swedish, Tamil, Thai, Turkish, Ukrainian, Vietnamese, Welsh
Irish, Icelandic, Croatian, Serbian, Bulgarian, Slovak, Albanian, Estonian, Latvian, Lithuanian, Basque, Catalan, Urdu, Malay, Zulu
Mandarin
""")
CODE_LANGUAGES = _list("""
C, C++, Java, JavaScript, TypeScript, Rust, Go, Ruby, PHP, Swift, Kotlin, Scala, Haskell, Perl, Lua, R, Julia, SQL, HTML, CSS, Bash, Fortran
COBOL, Lisp, Prolog, Erlang, Elixir, Dart, Pascal, assembly
Objective-C, C#, Visual Basic, Matlab, Clojure, OCaml, F#, Groovy, PowerShell, Ada, Scheme, Smalltalk, Zig, Nim, Solidity, Basic
""")
PROGRAMS = _list("""
web server, chess engine, game, login page, calculator, chat app, website, linked list, parser, compiler, web scraper, database
operating system
database query, shopping cart, music player, weather app, todo app, binary tree, hash table, snake game, mail client, file server
web browser
neural network, ray tracer, text editor, phone app, web page, search engine, video game, chatbot, online shop, blog, spreadsheet
tetris game
""")
EVENTS = _list("""
the First World War, the Second World War, the French Revolution, the Moon landing, the fall of the Berlin Wall, the Black Death
the American Civil War, the Russian Revolution, the Great Fire of London, the Battle of Waterloo, the Battle of Hastings, the Gold Rush
the Great Depression, the fall of Rome, the Boston Tea Party, the sinking of the Titanic, the first Olympic Games, the invention of printing
the invention of the telephone, the discovery of America, the discovery of penicillin, the eruption of Vesuvius, the end of the Cold War
the storming of the Bastille, the first flight across the Atlantic, the last Ice Age, the Peloponnesian War, the Hundred Years War
World War 1, World War 2, World War I, World War II, the Vietnam War, the Korean War, the Gulf War, the Iraq War, the Spanish Civil War
the Crimean War, the Battle of Trafalgar, the Battle of Stalingrad, the Cuban missile crisis, the Chernobyl disaster, the oil crisis
the American Revolution, the fall of Constantinople, the Renaissance, the Reformation, the first Moon landing, the Woodstock festival
the Olympic Games in Berlin, the Wall Street Crash, the Industrial Revolution, the assassination of Kennedy, the financial crisis, Brexit
""")
WHYS = _list("""
the sky is blue, the sea is salty, the grass is green, leaves change colour, cats purr, dogs bark, birds sing, birds migrate
bees make honey
we dream, we yawn, we sleep, we get hiccups, people laugh, people cry, people go to war, prices rise, volcanoes erupt, stars twinkle
the Moon has phases, the Earth turns, the tides change, ice floats, metal rusts, bread rises, onions make us cry, planes fly, ships float
magnets attract iron, the dinosaurs died out, Rome fell, bears hibernate, zebras have stripes, flamingos are pink, the days get shorter
rainbows appear, it thunders, the wind blows, glass breaks, salt melts ice, soap cleans, hair turns grey, bones heal, muscles ache
the stock market falls, taxes exist, time passes, music makes us happy, the universe expands, some people are left-handed, cats hate water
""")
MEDICAL = _list("""
a headache, a cough, a fever, a rash, a sore throat, a toothache, back pain, a stomach ache, a broken arm, high blood pressure, insomnia
a cold, the flu
an allergy, chest pain, knee pain, dizziness, a burn, a bee sting, an ear infection, a migraine, heartburn, a swollen ankle, depression
anxiety, asthma, a nosebleed, a virus, hay fever
a stomach bug, a sprained ankle, sunburn, acne, warts, a cramp, a panic attack, measles, chickenpox, arthritis, high cholesterol, vertigo
a sinus infection, eczema, food poisoning, low blood pressure, a black eye, nausea, a blister, a runny nose, pneumonia, COVID, anaemia
""")
LEGAL = _list("""
my landlord, my contract, a divorce, a parking fine, a lawsuit, my will, a visa, a work permit, a custody case, copyright law, tax law
my neighbour's fence, a speeding ticket, a rental contract, my dismissal, a patent, an inheritance, my employer, a broken warranty
my divorce, my visa, a will, my rent, a debt collector, an unpaid bill, an insurance claim, a traffic accident, my passport, a stolen phone
""")
FINANCE = _list("""
shares, bonds, gold, Bitcoin, my pension, a mortgage, a loan, my savings, an index fund, a house, crypto coins, the stock market
real estate, a credit card, life insurance, my debts, a startup, foreign currency, my taxes, a savings account
Tesla shares, Apple shares, Ethereum, silver, oil, my money, my house, my loan, my salary, a pension fund, penny stocks, an NFT
a lottery ticket
""")
PICTURES = _list("""
a cat, a dog, a sunset, a castle, a dragon, a mountain, a robot, a flower, a city, a horse, a ship, a forest, my family, a logo, a car
a beach, an astronaut, a house, a bird, a map, a portrait, a unicorn, a rainbow, the Moon, a tree, a tiger, a bridge, a birthday card
an elephant, a spaceship, a princess, a pirate ship, a snowman, my dog, my house, a chart, a coat of arms, an apple, a face, a lion
a cartoon
""")
ESSAYS = _list("""
the causes of the war, climate change, modern art, democracy, the Roman Empire, the history of music, social media, globalisation
the future of work, human rights, Shakespeare, the French Revolution, nuclear energy, space travel, education, the ocean, immigration
the Industrial Revolution, artificial intelligence, poverty, the water cycle, the meaning of life, sports and society, healthy food
""")
ACTIONS = _list("""
book a flight, book a hotel, order a pizza, send an email, call my mother, set an alarm, set a timer, play some music, open the door
turn on the lights, buy a ticket, pay my bill, check my email, read my messages, open my calendar, post a photo, download a file
find a restaurant, call a taxi, reserve a table, start my car, charge my phone, record a video, print a page, scan this page, edit my photo
remember my birthday, remind me tomorrow, water my plants, feed my cat
make me a sandwich, clean my room, do my dishes, drive me home, call the police, send a text message, order food, buy me a book
wake me at seven
play a song, take a photo, turn off the light, close the window, switch on the TV, write to my boss, pay my taxes, cook dinner, walk my dog
""")
SITES = _list("""
the internet, the web, Wikipedia, this website, this link, my website, the latest version, a news site, an online shop, the train times
flight prices, the bus timetable, hotel prices, a phone number, an address, my bank account, this video, the opening hours, house prices
cinema times, the football results, the exchange rate, the price of gold, the price of petrol
""")
MEDIA = _list("""
film, book, song, video game, restaurant, phone, laptop, car, hotel, football team, band, series, podcast, holiday, bike, camera, television
museum, novel, album, board game, perfume, watch, gym, bank, university, diet, computer, coffee machine, headset
""")
POLITICS = _list("""
the government, the president, the election, the prime minister, the parliament, the new law, the tax reform, the opposition, the war
the left, the right, the budget, the minister, immigration, the border, the strike, the protests, the king, the court, the vote, the party
the president's speech, the police, the army, the monarchy, the death penalty, gun control, abortion, the climate talks, free trade
the coalition
""")
WEATHER_ASKS = _list("""
the weather, the temperature, the forecast, the weather forecast, the wind, the rain
""")
PYTHON_JOBS = _list("""
adds two numbers, counts the vowels in a word, reverses a string, finds the largest number, checks for an even number, joins two lists
removes empty strings, counts words, doubles every number, sums a list, finds the shortest word, makes a word upper case, sorts a list
checks for a palindrome, counts a letter, multiplies a list, finds the average, filters short words, removes duplicates, squares numbers
""")
HOWTOS = _list("""
clean a window, water a plant, wash a cup, pack a bag, make a bed, boil an egg, sew on a button, fold a shirt, polish shoes, sweep a floor
wrap a present, write a postcard, set a table, make tea, clean a mirror, tidy a desk, plan a picnic, wash a jumper, peel an orange
air a room
""")
FUN = _list("""
a limerick, a tongue twister, a haiku, a proverb, a quote, a magic trick, a crossword, a horoscope, a motto, a slogan, a nickname
a prophecy
a prayer, a toast, a rap, a sonnet, a ghost story in French, a movie script, a sudoku, a recipe for success, a lottery number
a chat-up line
a poem, a song, a rhyme for my card, a speech, a secret, a business idea, a username, a name for my band, a title for my novel
""")
LEADS = (
    "Hi! ", "Hello, ", "Hey, ", "Question: ", "Quick question: ", "I have a question. ", "One more question: ", "Just curious: ",
    "Hello OmniDemo! ", "Another thing: ", "OmniDemo, ", "Good morning! ", "Now something else. ", "Okay, next: ", "So, ", "Well, ", "And ",
    "Ok, ", "Please: ", "Tell me: ", "Next question: ", "hi, ", "Good. ", "Thanks. ", "Now: ",
)  # fmt: skip
CONSONANTS = "bcdfghjklmnprstvwz"
VOWELS = "aeiou"
MASH = ("asdf", "qwer", "jkl", "asdfgh", "qwerty", "zxcv", "hjkl", "fdsa", "uiop", "xx", "yxcv", "lkj", "dfg", "wer", "poi", "bnm")

ASSISTANTS = _list("""
ChatGPT, GPT-4, GPT-5, GPT, Claude, Gemini, Siri, Alexa, Copilot, Bard, Cortana, Llama, Mistral, Grok, DeepSeek, Qwen, Gemma, HAL 9000
Watson
Google Assistant, Bixby, Eliza, Deep Blue, Perplexity, Phi, Falcon, R2-D2, Wikipedia, Google
""")
PETS = _list("""
dog, cat, rabbit, hamster, guinea pig, parrot, goldfish, pony, horse, tortoise, budgie, mouse, canary, snake, lizard, puppy, kitten
black cat
white rabbit, big dog, little dog, old cat, donkey, goat, sheep, duck, hen
""")
LIKED = _list("""
music, football, chess, pizza, chocolate, coffee, tea, books, stories, Python, maths, rain, summer, winter, snow, the sea, flowers, trains
films
dancing, swimming, jazz, pop music, ice cream, cake, cheese, spiders, school, work, holidays, computers, robots, people, poetry, art
spring, Mondays
video games, football matches, long walks, gardening, cooking, travelling, the night, the colour blue, tennis, cats, dogs, horses, pasta
sushi
""")
FAVOURITES = _list("""
colour, color, food, animal, book, film, movie, song, band, number, word, day, season, city, country, drink, fruit, flower, sport, game
joke
story, language, month, letter, place, subject, toy, season of the year, ice cream, vegetable, cake, team, actor, singer, planet, bird
dish, music
""")
BODILY = _list("""
eat, drink, sleep, dream, dance, sing, swim, cook, drive, walk, run, fly, jump, see, hear, smell, taste pizza, feel pain, cry, laugh aloud
drive a car
ride a bike, play the piano, play football, climb a tree, go for a walk, go on holiday, go to school, breathe, grow, get old, fall in love
get ill
drink coffee, watch films, listen to music, take a bath, brush teeth, wear a hat, hug people, shake hands, whistle, sneeze, have lunch
go shopping
""")
SKILLS = _list("""
tell a joke, tell jokes, write a story, tell a story, add numbers, work out small sums, write Python, write code, count to ten
summarise a text
explain how to make tea, help with maths, solve a word problem, tell a riddle, spell a word, find a rhyme, name the days of the week
flip a coin
write a Python function, write short stories, do maths, explain everyday things, say the alphabet, find the opposite of a word
""")
SNACKS = _list("make tea, boil an egg, peel an orange, make toast, make a sandwich, make a salad, cook rice")
WISHES = _list("""
happy birthday, merry Christmas, happy new year, happy Easter, nice day, good weekend, nice weekend, good week, nice evening, happy holiday
good night, nice trip, happy Halloween, lovely day, great day, good morning
""")
REGIONS = _list("""
Europe, Africa, Asia, Antarctica, Texas, California, Bavaria, Tuscany, Alaska, Hawaii, Florida, Siberia, Provence, Catalonia, Tibet
Patagonia
Scandinavia, the Caribbean, the Balkans, the Middle East, South America, North America, Bali, Sicily, Crete, Corsica, Madeira
""")
LANDMARKS = _list("""
Mount Everest, the Eiffel Tower, the Great Wall of China, the Statue of Liberty, Big Ben, the Colosseum, the Taj Mahal, the Grand Canyon
the Nile, the Amazon, the Rhine, the Danube, the Thames, the Mississippi, Lake Victoria, Loch Ness, the Dead Sea, the Moon
Mont Blanc, Mount Fuji, Kilimanjaro, the Matterhorn, the Golden Gate Bridge, Tower Bridge, the White House, Buckingham Palace, the Louvre
the Great Pyramid, Stonehenge, the Berlin Wall, the Empire State Building, the Burj Khalifa, the Leaning Tower of Pisa, the Panama Canal
the Suez Canal, the Sahara, the Gobi Desert, the Atlantic Ocean, the Pacific Ocean, the Black Sea, Mars, Jupiter, Venus, Saturn, the Sun
the Titanic, the Brandenburg Gate, Notre-Dame, the Sagrada Familia, the Acropolis, Machu Picchu, Ayers Rock
""")
RECORDS = _list("""
highest mountain in the world, longest river in the world, biggest country in the world, smallest country in the world, largest ocean
fastest animal in the world, tallest building in the world, deepest lake in the world, biggest city in the world, oldest tree in the world
largest desert, hottest place on Earth, coldest place on Earth, fastest car
biggest planet, nearest star, most spoken language, best-selling book, most expensive painting, longest bridge, rarest animal, oldest city
highest waterfall, largest island, most famous painting, largest lake, deadliest snake
""")
OFFICES = _list("""
president, king, queen, prime minister, chancellor, mayor of the capital, emperor, head of state, minister of finance, first lady
richest man, best football player, most famous singer, national hero, patron saint
""")
ANIMAL_DEEDS = _list(
    "sleep, hide, sing, fight, dig, dream, migrate, hunt at night, live in groups, change colour, attack people, make noise, grow so fast"
)
SKIES = _list("sunny, rainy, cold, hot, windy, warm, cloudy, foggy, stormy, snowy, freezing, nice")
WHENS = _list(
    "today, tomorrow, now, tonight, this week, this weekend, next week, this evening, right now, this afternoon, on Sunday, on Monday"
)
CONTESTS = _list("""
World Cup, Super Bowl, Champions League, Tour de France, Wimbledon final, cup final, football match, European Championship
Formula One race
chess championship, boxing match, tennis final, marathon, Eurovision Song Contest, derby, World Series, Nobel Prize
rugby final
hockey game, league, golf tournament, election
""")
GOODS = _list(
    "bitcoin, house, flat, train ticket, cinema ticket, pizza, coffee, haircut, wedding dress, ring, flight, new car, pair of shoes"
)
LONG_TEXTS = _list(
    "novel, thesis, dissertation, presentation, book report, screenplay, lecture, long essay, research paper, article, long story"
)
VERSES = _list("poem, song, haiku, limerick, rap, ballad, sonnet, love poem, short poem, lullaby, hymn, funny poem, rhyming poem")
VERSE_THEMES = _list("""
love, spring, autumn, the sea, the moon, summer, winter, a lost friend, my mother, the stars, rain, a rose, friendship, the wind, home
snow, freedom
""")
PHRASES = _list("""
good morning, I love you, thank you, hello, goodbye, good night, how are you, please, excuse me, my name is Anna, where is the station
cheers
happy birthday, see you tomorrow, I am hungry, yes, no, water, friend, welcome, I am from England, one beer please, the sun is shining
""")
RECEIVERS = _list("""
my boss, my landlord, my mother, my teacher, my friend, the bank, the mayor, Santa Claus, my neighbour, my girlfriend, my aunt
the president
the newspaper, my doctor, the school, a customer, my team, my grandmother, the tax office, a company, my wife, my husband, the hotel
my uncle
""")
HARD_MATHS = _list("""
the square root of #, the cube root of #, the logarithm of #, the sine of #, the derivative of x^2, the integral of x^2, # to the power of #
the factorial of #, the #th prime number, the digits of pi, the derivative of sin(x), the cosine of #, the limit of 1/x, the area under x^2
the roots of x^2 - # = 0, the greatest common divisor of # and #, the eigenvalues of a matrix, # in binary, # in Roman numerals
""")
TITLES = _list("""
Harry Potter, The Lord of the Rings, Star Wars, Titanic, Hamlet, Romeo and Juliet, The Lion King, Frozen, Game of Thrones, Friends
The Matrix
Alice in Wonderland, Moby Dick, War and Peace, Macbeth, Jurassic Park, The Godfather, Casablanca, Breaking Bad, Minecraft, Tetris, Pinocchio
Bohemian Rhapsody, Imagine, Thriller, Faust, Don Quixote, Dracula, Frankenstein, Robinson Crusoe, Treasure Island, The Hobbit, Avatar
Inception
Finding Nemo, Toy Story, Super Mario, Zelda, Fortnite, Peter Pan, Cinderella, Snow White, The Little Prince, Winnie-the-Pooh, Oliver Twist
""")
LIFE = _list("""
life, love, happiness, time, death, truth, beauty, freedom, justice, the soul, friendship, art, evil, hope, fate, power, reality, luck
the universe, God, wisdom, success, fear, courage, heaven, peace, trust, the future of mankind, destiny, free will, consciousness
""")
AMBITIONS = _list("""
become rich, lose weight, find a job, find a girlfriend, make friends, get a visa, win the lottery, get famous
start a company, pass my exam, buy a house, grow taller, stop smoking, sleep better, save money, become a doctor, become a pilot
win at chess
run a marathon, impress my boss, write a novel, quit my job, be happy, raise a child, train my dog, fix my car, repair my phone
get a passport, file my taxes, invest my money, build a house, become president, speak better, study for my exam, meet new people
lose my accent
""")
FUTURES = _list("""
the world will end soon, my team will win, it will be a good year, robots will rule the world, prices will rise, my boss will be nice
there will be a war
we will live on Mars, people will fly to the stars, the price of gold will fall, AI will take my job, aliens will come
the climate will change
my friend will call, the summer will be hot, the election will be close, cars will drive alone, cancer will be cured, the train will be late
""")
GAMES = _list("""
chess, tic-tac-toe, poker, hangman, hide and seek, Monopoly, cards, football, Scrabble, checkers, a game, bingo, twenty questions, I spy
rock paper scissors, dominoes, backgammon, go, Minecraft, Tetris, solitaire, bridge, darts, a quiz game, charades, noughts and crosses
tennis
""")
