"""Runs the `deepnmt` command line as `python -m keras_deepnmt`."""

import sys

from keras_deepnmt.cli import main

if __name__ == "__main__":
    sys.exit(main())
