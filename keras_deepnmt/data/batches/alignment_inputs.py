"""Adds the given word alignments to the inputs of a batch."""

import numpy as np

from keras_deepnmt.data.batches.batch_plan import BatchPlan
from keras_deepnmt.data.batches.batch_transforms import BatchTransform
from keras_deepnmt.data.token_links import LinkStore


class AlignmentInputs(BatchTransform):
    """Gives the inputs of a batch the alignments of its pairs.

    `alignments`, uint8 `(B, T, S)`, is 1 where a target token and a source
    token are linked. It must be the last transform: others change ids. `plan`
    tells which rows are in which batch.
    """

    def __init__(self, links: LinkStore, plan: BatchPlan):
        self._links, self._plan = links, plan

    def change_inputs(self, inputs, step):
        rows, target_length = inputs["target_ids"].shape
        found = np.zeros(
            (rows, target_length, inputs["source_ids"].shape[1]), "uint8"
        )
        links = self._links.read(self._plan.batch(step)[1].tolist())
        for row, one in enumerate(links):
            found[row, one[:, 0], one[:, 1]] = 1
        return {**inputs, "alignments": found}
