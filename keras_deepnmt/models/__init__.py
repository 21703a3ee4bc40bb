"""Models: their common interface and the backbones that implement it."""

from keras_deepnmt.models.conv_seq2seq import ConvSeq2Seq as ConvSeq2Seq
from keras_deepnmt.models.ensemble import Ensemble as Ensemble
from keras_deepnmt.models.seq2seq import Seq2Seq as Seq2Seq
from keras_deepnmt.models.training_step.alignment_model import (
    AlignmentModel as AlignmentModel,
)
from keras_deepnmt.models.training_step.alignment_model import (
    TranslationTable as TranslationTable,
)
from keras_deepnmt.models.training_step.distillation import (
    Distillation as Distillation,
)
from keras_deepnmt.models.training_step.guided_alignment import (
    GuidedAlignment as GuidedAlignment,
)
from keras_deepnmt.models.training_step.objective import Objective as Objective
from keras_deepnmt.models.training_step.objective_term import (
    ObjectiveTerm as ObjectiveTerm,
)
from keras_deepnmt.models.training_step.objective_term import (
    register_objective_term as register_objective_term,
)
from keras_deepnmt.models.training_step.r_drop import RDrop as RDrop
from keras_deepnmt.models.training_step.scheduled_sampling import (
    ScheduledSampling as ScheduledSampling,
)
from keras_deepnmt.models.transformer import Transformer as Transformer
