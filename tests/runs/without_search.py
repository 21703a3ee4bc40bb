"""`deepnmt` in whose runs BLEU costs no search, but depends on the weights.

Run as a program with the words of a command.
"""

import sys

from broken_runs import translate_by_weights

from keras_deepnmt.cli import main
from keras_deepnmt.translator import Translator

if __name__ == "__main__":
    Translator.translate = translate_by_weights
    sys.exit(main())
