"""R-Drop: two forwards with different dropout must agree."""

import math

from keras_deepnmt.losses import symmetric_kl_divergence
from keras_deepnmt.models.training_step.objective_term import ObjectiveTerm


class RDrop(ObjectiveTerm):
    """Adds the divergence between two forwards of a batch (Liang et al., 2021).

    With the distributions P1, P2 of a position in the two forwards, and the
    losses L1, L2 that the other terms give it,

        loss = (L1 + L2) / 2 + alpha / 4 (KL(P1 || P2) + KL(P2 || P1))

    which is half of the paper's objective
    `(L1 + L2) + alpha / 2 (KL(P1 || P2) + KL(P2 || P1))`, so that the loss
    and a good learning rate stay those of plain training.

    `alpha` is the argument `r_drop` of `Seq2Seq.compile`.
    """

    needs_second_forward = True

    def __init__(self, alpha):
        if not 0.0 <= alpha < math.inf:
            raise ValueError(
                "`r_drop` must be finite and not negative. Received: "
                f"r_drop={alpha}."
            )
        self.alpha = alpha

    def compare_forwards(self, model, labels, first, second):
        # The symmetric divergence is the mean of both directions.
        return self.alpha * symmetric_kl_divergence(first, second)
