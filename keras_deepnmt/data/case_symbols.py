"""The symbols of factored case, see `factored_case`."""

# Unicode guarantees that no text has these characters, "noncharacters".
CAPITAL = "\U0001fffe"  # the next letter
CAPITALS = "\U0001ffff"  # all letters up to the next other character
ALL_CAPITALS = "\U0002fffe"  # all letters
EACH_CAPITAL = "\U0002ffff"  # the first letter of each word
CASE_SYMBOLS = CAPITAL + CAPITALS + ALL_CAPITALS + EACH_CAPITAL
# They stand around symbols of users, while a graph inserts case symbols.
BRACKETS = "\U0003fffe\U0003ffff"
# What a text loses before symbols are inserted.
DROPPED = CASE_SYMBOLS + BRACKETS
# Symbols that no letter follows, and the spaces that belong to them.
LAST_SYMBOLS = f"(?: ?[{CASE_SYMBOLS}])+ ?"
# The fewest words for one `ALL_CAPITALS` or `EACH_CAPITAL`.
LEAST_ALL_CAPITALS, LEAST_EACH_CAPITAL = 2, 4
