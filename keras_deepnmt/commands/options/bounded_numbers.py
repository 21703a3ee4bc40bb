"""Types of options that take a number: infinity, which floats have, is none."""

from jsonargparse.typing import restricted_number_type

from keras_deepnmt.commands.options.parser import LARGEST

# More seconds than this a thread could not wait for.
_AT_MOST = ("<=", LARGEST)
PositiveNumber = restricted_number_type(
    "PositiveNumber", float, [(">", 0), _AT_MOST]
)
NonNegativeNumber = restricted_number_type(
    "NonNegativeNumber", float, [(">=", 0), _AT_MOST]
)
