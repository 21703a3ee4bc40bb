"""Models of other toolkits, read as models of this package.

`import_model` writes a preset folder, which everything else takes: it
translates, is evaluated, fine-tuned, analyzed and exported.
"""

from keras_deepnmt.exchange.imported_model import (
    ImportedModel as ImportedModel,
)
from keras_deepnmt.exchange.importing import FORMATS as FORMATS
from keras_deepnmt.exchange.importing import import_model as import_model
from keras_deepnmt.exchange.marian_hf import load_marian as load_marian
