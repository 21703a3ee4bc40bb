"""Lets `python -m keras_deepnmt` do what `deepnmt` does."""

import sys

from keras_deepnmt.cli import main

if __name__ == "__main__":
    sys.exit(main())
