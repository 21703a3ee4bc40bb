"""The error for a model whose probabilities are not numbers."""

import numpy as np
from keras import ops

from keras_deepnmt.errors import UserError


def no_probabilities(model) -> UserError:
    """Makes the error for a model that computes NaN.

    It names the first weight that is not finite, if there is one.
    """
    faulty = next((v for v in model.variables if not _is_finite(v)), None)
    if faulty is not None:
        cause = (
            f"its weight {faulty.path} is not finite, as after training that "
            "diverged. Use an earlier checkpoint, or train again with a lower "
            "learning rate"
        )
    else:
        cause = (
            "all weights are finite, but the computation overflows. Use the "
            "model with the data type float32"
        )
    return UserError(
        f"The model gives NaN (not a number) instead of probabilities: {cause}."
    )


def _is_finite(variable):
    values = ops.convert_to_numpy(ops.cast(variable.value, "float32"))
    return bool(np.isfinite(values).all())
