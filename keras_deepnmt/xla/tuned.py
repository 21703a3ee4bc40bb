"""Every constant that was chosen by measuring on a processor.

Each says what was measured, and where; the tables are in
`benchmarks/speed/README.md`, the rows in `benchmarks/speed/results/`. A value
without a row was chosen in trials of which nothing was kept: measure before you
change it, and add the row. Read a constant as `tuned.NAME`, so that a test or a
benchmark can replace it in this one place.
"""

# Stages of a search (`decoding/staged_search.py`).
#
# A search that computes only for sentences that are not over, with room for
# translations of common length at first, was 2.1 times as fast with batches of
# 32 of 1,000 sentences as without stages, and 2.3 times with batches of 128
# (`decoding.csv`, 2026-11-23, trained tiny model, 2 cores of an AMD EPYC of
# family 25; this includes histories that are written in place).

# Steps of the first stage for a source of S tokens: a factor times S, plus a
# number. Nearly all searches are over by then.
FIRST_STAGE_FACTOR = 1.5
FIRST_STAGE_EXTRA = 8
# How many times as long each stage is as the one before. No row.
STAGE_GROWTH = 2
# A stage that is within this factor of the longest search is that long, which
# saves a program. No row.
NEARLY_ALL = 1.25
# After this many sentences in batches of one shape, other programs save more
# time than their compilation takes. With them a stage also ends when half of
# its sentences were over: 3.2 instead of 2.3 times as fast with batches of 128,
# and 2.2 instead of 2.1 with batches of 32 (`decoding.csv`, 2026-11-23).
MANY_SENTENCES = 1_000
# After them a search has room for this many steps at first: 1.20 times as fast
# (1.14 to 1.40) as without little room, and with stages that end when a half
# and not a quarter of their sentences goes on, in batches of 128
# (`decoding.csv`, 2026-11-25, family 26). An export, which begins with as
# little room, became 1.30, 1.91 and 3.47 times as fast by its stages in batches
# of 8, 32 and 128 ("Exports"). Halves within one program, of which none is a
# stage of its own, take 0.81, 0.66 and 0.61 of the processor time of a search
# of whole batches of 32 of `transformer_small.tatoeba_de_en` with 5 beams and
# 16, 32 and 64 source tokens. No row.
SHORT_LENGTH = 16
# Where more than half of them go on at the end of that program, a later stage
# ends when one in this many goes on.
LIVE_SHARE = 4
# How many times as much room a search gets when its room is used up. No row.
ROOM_GROWTH = 4
# With fewer rows a stage saves less than it takes to begin another one. No row.
LEAST_ROWS = 8

# Batches of a translator (`translator/`).
#
# The matrices of a small model's step are too small to be shared by cores: a
# single batch of 32 in two parts at once is 1.85 times as fast with 2.4 million
# weights, 1.19 with 9.4, 1.00 with 22.7 and 0.94 with 60.5 ("Small models and
# few sentences"). More searches at once would need memory for more caches.
BATCHES_AT_ONCE = 2
FEW_WEIGHTS = 20_000_000
# Positions of padding that are worth one more batch. No row.
MUCH_PADDING = 512
# Searching this many positions of padding takes less time than a compilation.
# No row.
COMPILATION_PADDING = 2_048
# The same for the first text of a command, since most inputs end with it: fewer
# programs are compiled, but a search with everything compiled is slower. No
# row.
COMPILATION_PADDING_OF_FIRST_TEXTS = 16_384
# A command compiles only after this many tokens of its input. For 488 tokens
# the quickstart's model took 7.1 s of processor time by plain graphs from the
# start to the end of the command, 8.8 s compiled, and 7.0 s with the cache of
# the command before; for 1,456 tokens 10.1, 15.0 and 9.5 s ("First translations
# of a command").
FEW_TOKENS = 500
# A search, or the scoring of targets, is compiled for this many shapes, since
# TensorFlow never frees a program. With it a translator stays within 1.5 % of
# its memory after 500 calls of any kind ("Memory of repeated calls" in
# `benchmarks/memory/README.md`); before, a shape of the quickstart's model took
# 30 to 50 MiB.
MOST_PROGRAMS = 16
# A later shape is padded to one of them that is up to so many times as large: a
# plain graph takes 2 to 10 times as long as a program ("Searches without XLA").
MUCH_LARGER_SHAPE = 4
# With a larger part of the vocabulary as candidates there is nothing to gain.
# No row.
LARGEST_PART = 0.7

# Layers and models.
#
# Numbers of states with which a processor multiplies the transposed embedding
# faster than the embedding itself: with one sentence of 4 beams 1.05 to 1.22
# times as fast, with 8 or 16 sentences 0.99 to 1.03 ("Small models and few
# sentences").
FEW_STATES = range(2, 33)
# Roles in one matrix product of `RoleInteraction`: a product for all roles
# together is not faster and needs more memory. No row.
ROLES_AT_ONCE = 8

# Memory of one program.
#
# Target positions, padding included, whose scores of the whole vocabulary are
# kept at a time when targets are scored: 125 MiB for 32,000 tokens in float32.
SCORED_POSITIONS = 1024

# Training (`data/batches/`).
#
# A compilation is taken to cost as much as computing this many batches. No row.
COMPILATION_BATCHES = 100
