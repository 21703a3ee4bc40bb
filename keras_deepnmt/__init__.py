"""A Keras 3 toolkit and model zoo for deep neural machine translation."""

from keras_deepnmt.version import __version__ as __version__
