"""R-Drop: two forwards with different dropout must agree."""

import math

from keras_deepnmt.losses import symmetric_kl_divergence
from keras_deepnmt.models.training_step.objective_term import ObjectiveTerm


class RDrop(ObjectiveTerm):
    """Adds the divergence between two forwards of a batch.

    Dropout makes two forwards of the same batch differ. R-Drop (Liang et al.,
    2021) trains the model to give the same distributions in both. With the
    distributions P1, P2 of a position in the two forwards, and the losses L1,
    L2 that the other terms give it,

        loss = (L1 + L2) / 2 + alpha / 4 (KL(P1 || P2) + KL(P2 || P1))

    Differs from the paper: this is half of its objective
    `(L1 + L2) + alpha / 2 (KL(P1 || P2) + KL(P2 || P1))`, so that the loss
    and a good learning rate stay those of plain training.
    Cost: one more forward and backward pass per update.

    Args:
        alpha: float, at least 0. Weight of the divergence.

    Raises:
        ValueError: if `alpha` is negative or not finite.

    Example:
    >>> RDrop(5.0).alpha
    5.0

    Reference:
        - [Liang et al., 2021](https://arxiv.org/abs/2106.14448).
    """

    needs_second_forward = True

    def __init__(self, alpha):
        if not 0.0 <= alpha < math.inf:
            raise ValueError(
                "`alpha` must be finite and not negative. Received: "
                f"alpha={alpha}."
            )
        self.alpha = alpha

    def compare_forwards(self, model, labels, first, second):
        # The symmetric divergence is the mean of both directions.
        return self.alpha * symmetric_kl_divergence(first, second)
