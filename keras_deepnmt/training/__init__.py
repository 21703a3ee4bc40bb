"""Schedules, optimizers, checkpoints and callbacks for `fit`."""

from keras_deepnmt.training.alignment_learning import (
    learn_alignment_model as learn_alignment_model,
)
from keras_deepnmt.training.callbacks import (
    BestCheckpointCallback as BestCheckpointCallback,
)
from keras_deepnmt.training.callbacks import (
    CheckpointCallback as CheckpointCallback,
)
from keras_deepnmt.training.callbacks import EarlyStopping as EarlyStopping
from keras_deepnmt.training.checkpoints import (
    CheckpointStore as CheckpointStore,
)
from keras_deepnmt.training.compilation_limit import (
    CompilationLimit as CompilationLimit,
)
from keras_deepnmt.training.divergence import Diverged as Diverged
from keras_deepnmt.training.divergence import (
    DivergenceDetector as DivergenceDetector,
)
from keras_deepnmt.training.divergence import lower_rate as lower_rate
from keras_deepnmt.training.minimum_risk import MinimumRisk as MinimumRisk
from keras_deepnmt.training.optimizers import Adam as Adam
from keras_deepnmt.training.optimizers import AdamW as AdamW
from keras_deepnmt.training.optimizers import Muon as Muon
from keras_deepnmt.training.optimizers import Nesterov as Nesterov
from keras_deepnmt.training.optimizers import RateFactor as RateFactor
from keras_deepnmt.training.plateau import DivideOnPlateau as DivideOnPlateau
from keras_deepnmt.training.progress import (
    ThroughputProgress as ThroughputProgress,
)
from keras_deepnmt.training.schedules import Constant as Constant
from keras_deepnmt.training.schedules import (
    DecayToZero as DecayToZero,
)
from keras_deepnmt.training.schedules import (
    InverseSquareRoot as InverseSquareRoot,
)
from keras_deepnmt.training.schedules import WarmUp as WarmUp
from keras_deepnmt.training.sentence_bleu import sentence_bleu as sentence_bleu
from keras_deepnmt.training.strategies import make_strategy as make_strategy
from keras_deepnmt.training.temperature import (
    TemperatureDecay as TemperatureDecay,
)
from keras_deepnmt.training.transfer import (
    copy_shared_weights as copy_shared_weights,
)
from keras_deepnmt.training.transfer import freeze as freeze
from keras_deepnmt.training.weight_average import (
    ValidateAverage as ValidateAverage,
)
from keras_deepnmt.training.weight_average import (
    WeightAverage as WeightAverage,
)
from keras_deepnmt.training.weight_average import (
    averaged_weights as averaged_weights,
)
from keras_deepnmt.xla.memory import (
    keep_freed_memory as keep_freed_memory,
)
