"""Masks that Keras attaches to tensors, as `Embedding(mask_zero=True)` does.

Keras passes the mask of a tensor to the argument `mask` of a call that has no
other tensor, and otherwise to the argument `<name>_mask` of the call.
"""


def first_mask(*masks):
    """Returns the first mask, also in lists of masks, that is not `None`.

    The states of several layers belong to the same tokens, so that the mask of
    one is the mask of all.
    """
    for mask in masks:
        if isinstance(mask, list | tuple):
            mask = first_mask(*mask)
        if mask is not None:
            return mask
    return None
