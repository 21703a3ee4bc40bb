"""What the papers show about a trained model, as numbers."""

from keras_deepnmt.analysis.input_exploitation import (
    input_exploitation as input_exploitation,
)
