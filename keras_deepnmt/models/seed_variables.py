"""The states of random generators, which no weights file holds."""


def seed_variables(model):
    """Lists the states of a model's random generators.

    Their paths carry a counter of the whole process, so order names them.

    Args:
        model: a built Keras model.

    Returns:
        List of variables that `model.variables` holds and `model.weights`
        does not.

    Example:
    >>> model = keras_deepnmt.models.Transformer(11, 13, 8, 16, 2, 1, 1)
    >>> tuple(seed_variables(model)[0].shape)
    (2,)
    """
    weights = {id(weight) for weight in model.weights}
    return [v for v in model.variables if id(v) not in weights]
