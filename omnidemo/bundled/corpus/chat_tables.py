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
Shakespeare, the Odyssey, the Bible, Greek mythology, Norse mythology, football, basketball, cricket, tennis, golf, rugby, chess, poker
Formula One, the World Cup, yoga, meditation, a marathon, a vaccine, an antibiotic, a virus, a bacterium, cancer, diabetes
asthma, malaria, influenza, the immune system, the heart, the liver, the brain, the nervous system, digestion, cholesterol, insulin
vitamin C, vitamin D, caffeine, alcohol, protein powder, a mortgage, a pension, a bond, a share, a tax return, compound interest
bankruptcy, insurance, a credit score, a contract, copyright, a patent, a trademark, the constitution, parliament, a senate
a referendum, NATO, the United Nations, the European Union, the World Bank, Brexit, a tariff, a recession, unemployment, globalisation
a microchip, a transistor, a laser, a satellite, a rocket engine, a jet engine, a diesel engine, an electric car, a hybrid car, a drone
a submarine, a microscope, an X-ray, an MRI scan, a 3D printer, a solar panel, a battery, a heat pump, a nuclear reactor, a power plant
radar, sonar, GPS, fibre optics, plastic, steel, aluminium, concrete, oxygen, hydrogen, carbon, helium, nitrogen, uranium, gold mining
the periodic table, an acid, a chemical bond, osmosis, mitosis, a cell, a chromosome, a fossil, a dinosaur, the Ice Age, a mammoth
coral, plankton, pollination, migration, hibernation, camouflage, symbiosis, the food chain, a prime number, pi, infinity, a fractal
the golden ratio, a matrix, a logarithm, an integral, a derivative, game theory, Linux, Windows, Android, Kubernetes, Docker, Git, HTML
CSS, SQL, an API, a compiler, a web browser, a search engine, social media, a podcast, Bitcoin, Ethereum, an NFT, phishing, spam
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
""")
COUNTRIES = _list("""
Argentina, Australia, Austria, Belgium, Bolivia, Brazil, Bulgaria, Cambodia, Canada, Chile, China, Colombia, Croatia, Cuba, Denmark
Ecuador, Egypt, Estonia, Ethiopia, Finland, France, Germany, Ghana, Greece, Hungary, Iceland, India, Indonesia, Ireland, Israel, Italy
Jamaica, Japan, Jordan, Kenya, Latvia, Lebanon, Malaysia, Mali, Mexico, Mongolia, Morocco, Nepal, New Zealand, Nigeria, Norway, Pakistan
Panama, Peru, Poland, Portugal, Romania, Senegal, Serbia, Singapore, Slovakia, Slovenia, Somalia, South Africa, South Korea, Spain, Sudan
Sweden, Switzerland, Thailand, Tunisia, Turkey, Uganda, Ukraine, Uruguay, Vietnam, Zambia
""")
CITIES = _list("""
Amsterdam, Athens, Bangkok, Barcelona, Beijing, Berlin, Boston, Brussels, Budapest, Cairo, Chicago, Copenhagen, Delhi, Dubai, Dublin
Edinburgh, Geneva, Hamburg, Hanoi, Helsinki, Istanbul, Jakarta, Lagos, Lima, Lisbon, London, Madrid, Melbourne, Milan, Montreal, Moscow
Mumbai, Munich, Nairobi, New York, Oslo, Paris, Prague, Rome, San Francisco, Seoul, Shanghai, Stockholm, Sydney, Tokyo, Toronto, Vienna
Warsaw, Zurich
""")
LANGUAGES = _list("""
Arabic, Bengali, Chinese, Czech, Danish, Dutch, Finnish, French, German, Greek, Hebrew, Hindi, Hungarian, Italian, Japanese, Korean, Latin
Norwegian, Persian, Polish, Portuguese, Romanian, Russian, Spanish, Swahili, Swedish, Tamil, Thai, Turkish, Ukrainian, Vietnamese, Welsh
""")
CODE_LANGUAGES = _list("""
C, C++, Java, JavaScript, TypeScript, Rust, Go, Ruby, PHP, Swift, Kotlin, Scala, Haskell, Perl, Lua, R, Julia, SQL, HTML, CSS, Bash, Fortran
COBOL, Lisp, Prolog, Erlang, Elixir, Dart, Pascal, assembly
""")
PROGRAMS = _list("""
web server, chess engine, game, login page, calculator, chat app, website, sorting program, linked list, parser, compiler, web scraper
database query, shopping cart, music player, weather app, todo app, binary tree, hash table, snake game, mail client, file server
neural network, ray tracer, text editor, phone app, script, web page, program that sorts a list, class for bank accounts
""")
EVENTS = _list("""
the First World War, the Second World War, the French Revolution, the Moon landing, the fall of the Berlin Wall, the Black Death
the American Civil War, the Russian Revolution, the Great Fire of London, the Battle of Waterloo, the Battle of Hastings, the Gold Rush
the Great Depression, the fall of Rome, the Boston Tea Party, the sinking of the Titanic, the first Olympic Games, the invention of printing
the invention of the telephone, the discovery of America, the discovery of penicillin, the eruption of Vesuvius, the end of the Cold War
the storming of the Bastille, the first flight across the Atlantic, the last Ice Age, the Peloponnesian War, the Hundred Years War
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
""")
LEGAL = _list("""
my landlord, my contract, a divorce, a parking fine, a lawsuit, my will, a visa, a work permit, a custody case, copyright law, tax law
my neighbour's fence, a speeding ticket, a rental contract, my dismissal, a patent, an inheritance, my employer, a broken warranty
""")
FINANCE = _list("""
shares, bonds, gold, Bitcoin, my pension, a mortgage, a loan, my savings, an index fund, a house, crypto coins, the stock market
real estate, a credit card, life insurance, my debts, a startup, foreign currency, my taxes, a savings account
""")
PICTURES = _list("""
a cat, a dog, a sunset, a castle, a dragon, a mountain, a robot, a flower, a city, a horse, a ship, a forest, my family, a logo, a car
a beach, an astronaut, a house, a bird, a map, a portrait, a unicorn, a rainbow, the Moon, a tree, a tiger, a bridge, a birthday card
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
""")
WEATHER_ASKS = _list("""
the weather, the temperature, the forecast, the weather forecast, the wind, the rain
""")
PRIVATE = _list("""
Where do you live?, How old are you?, Do you have a family?, Are you married?, What is your favourite colour?, What is your favourite food?
Do you have a girlfriend?, Do you sleep?, Do you dream?, What do you eat?, Do you have feelings?, Are you happy?, Are you lonely?
Do you love me?, What did you do yesterday?, Where were you born?, When is your birthday?, Do you have friends?, Do you have a dog?
What do you look like?, Can you see me?, Do you know me?, Do you know where I live?, What is my name?, How old am I?, What is my password?
Who is your best friend?, What are you wearing?, Do you get tired?, Do you like music?, What is your phone number?, Are you a boy or a girl?
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
a joke, a riddle, a poem, a rhyme, a limerick, a quiz, a tongue twister, a fun fact, a haiku, a proverb, a quote, a song, a magic trick
a crossword, a game, a pun, a horoscope, a motto, a slogan, a nickname, a secret, a prophecy, a prayer, a toast, a rap, a compliment
""")
LEADS = (
    "Hi! ", "Hello, ", "Hey, ", "Question: ", "Quick question: ", "I have a question. ", "One more question: ", "Just curious: ",
    "Hello OmniDemo! ",
    "Another thing: ", "OmniDemo, ", "Good morning! ", "Sorry to ask, but ", "Now something else. ", "Okay, next: ", "So, ", "Well, ",
)  # fmt: skip
CONSONANTS = "bcdfghjklmnprstvwz"
VOWELS = "aeiou"
MASH = ("asdf", "qwer", "jkl", "asdfgh", "qwerty", "zxcv", "hjkl", "fdsa", "uiop", "xx", "yxcv", "lkj", "dfg", "wer", "poi", "bnm")
