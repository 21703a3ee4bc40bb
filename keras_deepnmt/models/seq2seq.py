"""The interface that every translation model implements."""

import contextlib
from collections.abc import Iterable

import keras
import keras_nlp
from keras import ops

from keras_deepnmt.files import atomic_file
from keras_deepnmt.layers.recomputation import Block
from keras_deepnmt.layers.recording import attention_to_source, recorder
from keras_deepnmt.losses import (
    computes_from_scores,
    cross_entropy_of_scores,
    negative_log_likelihood,
)
from keras_deepnmt.masks import padding_mask
from keras_deepnmt.models.litert_export import check_operations
from keras_deepnmt.models.quantized_saving import (
    check_keras_file,
    check_preset,
)
from keras_deepnmt.models.training_step.keras_arguments import (
    check_arrays,
    check_compiled,
    make_token_loss,
    quiet_at_the_end_of_data,
    refuse_accumulating_optimizer,
    refuse_metrics,
    refuse_several_steps,
    refuse_weights,
    split_validation,
    unpack_validation,
)
from keras_deepnmt.models.training_step.objective import (
    Objective,
    take_earlier_arguments,
)
from keras_deepnmt.models.training_step.shared_batches import fill_rows
from keras_deepnmt.trained import find_run_folder

if keras.config.backend() == "tensorflow":
    from keras_deepnmt.models.training_step.tensorflow_step import (
        TensorFlowStep as Step,
    )
else:
    from keras_deepnmt.models.training_step.stateless_step import (
        StatelessStep as Step,
    )


class Seq2Seq(Step, keras_nlp.models.Backbone):
    """Base class of all models: forward pass, loss, training and presets.

    A subclass implements `encode` and `decode` once. Called on symbolic
    tensors in the constructor they make the functional graph that `fit`
    trains; called with a cache they decode step by step.

    Inputs are `{"source_ids": (B, S), "target_ids": (B, T)}` int32, where id 0
    is padding; the output is `(B, T, V)` scores. `fit` takes batches
    `({"source_ids", "target_ids"}, labels)` from any dataset.

    A subclass's constructor ends in
    `super().__init__(**self.symbolic_graph(), **kwargs)`.

    Args:
        **kwargs: `inputs` and `outputs` from `symbolic_graph`, and others as
            in `keras_nlp.models.Backbone`.

    Example:
    >>> model = keras_deepnmt.models.Transformer(11, 13, 8, 16, 2, 1, 1)
    >>> model.compile("adam")
    >>> source, target = np.ones((2, 5), "int32"), np.ones((2, 7), "int32")
    >>> model({"source_ids": source, "target_ids": target}).shape
    TensorShape([2, 7, 13])
    """

    output_fusion = None  # slot of a layer that returns log-probabilities
    # Made by the first `compile` with scheduled sampling.
    sampling_generator = None
    # Weights of the last forward, for a term of the objective that needs them.
    attention_to_source = ()

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        if keras.config.backend() != "torch":
            return
        # Here keras-hub's backbones do not track what was set before. A layer
        # that only another one calls, such as the projection in an output
        # fusion, would have no part in `weights`.
        for name, value in list(vars(self).items()):
            if isinstance(value, keras.layers.Layer):
                if value not in self.layers:
                    setattr(self, name, value)

    @classmethod
    def from_preset(cls, preset, load_weights=True, **kwargs):
        """Loads a model from a preset folder.

        Args:
            preset: folder that `save_to_preset` or `deepnmt export --format
                preset` wrote, or name of a trained model of the package
                (`trained.list_trained_models`).
            load_weights: bool. Whether the model has the stored weights, or
                newly initialized ones. Defaults to `True`.
            **kwargs: as in `keras_nlp.models.Backbone.from_preset`.

        Returns:
            The model.

        Example:
        >>> name = "transformer_tiny.demo_de_en"
        >>> keras_deepnmt.models.Transformer.from_preset(name).count_params()
        1174272
        """
        folder = str(find_run_folder(preset))
        return super().from_preset(folder, load_weights=load_weights, **kwargs)

    def call(self, inputs, training=None, **kwargs):
        """Runs the graph; in training, notes attention that a term needs."""
        if isinstance(inputs, dict):
            # For a term of the objective alone.
            inputs = {k: v for k, v in inputs.items() if k != "alignments"}
        # Keras traces the model before it is compiled, too.
        objective = getattr(self, "objective", None)
        if training and objective is not None and objective.needs_attention:
            with self.attention_recorder():
                return super().call(inputs, training=training, **kwargs)
        return super().call(inputs, training=training, **kwargs)

    @contextlib.contextmanager
    def attention_recorder(self):
        """Notes `attention_to_source` of the forwards in the context."""
        found = {}
        with recorder(found.__setitem__):
            yield
        names = attention_to_source(list(found))
        self.attention_to_source = tuple(found[name] for name in names)

    def symbolic_graph(self):
        """Traces `encode` and `decode` once on symbolic ids.

        Returns:
            Dict `{"inputs", "outputs"}` for `Backbone.__init__`.
        """
        inputs = {
            name: keras.Input((None,), dtype="int32", name=name)
            for name in ("source_ids", "target_ids")
        }
        memory = self.encode(inputs["source_ids"])
        outputs = self.decode(inputs["target_ids"], memory)
        return {"inputs": inputs, "outputs": outputs}

    @property
    def weights(self):
        """All weights, in the order of the graph's layers.

        `keras.models.clone_model` builds its copy in that order, so that
        `clone.set_weights(model.get_weights())` fits.
        """
        weights = [w for layer in self.layers for w in layer.weights]
        # Those of layers that only other layers call, and not twice.
        weights = {id(w): w for w in [*weights, *super().weights]}
        return list(weights.values())

    @property
    def trainable_weights(self):
        """The weights that train, in the order of `trainable_variables`.

        It is the order in which the layers are attributes of the model. Files
        hold the state of an optimizer in it, and `fit` expects both lists of
        the model in one order.
        """
        return self.trainable_variables

    def encode(self, source_ids):
        """Encodes the source.

        Args:
            source_ids: int tensor `(B, S)`, ending with 3, padded with 0.

        Returns:
            The memory: nested dict of tensors with leading axis B.
        """
        raise NotImplementedError

    def decode(self, target_ids, memory, cache=None, index=None, project=None):
        """Scores the next token at each target position.

        Args:
            target_ids: int tensor `(B, T)`; with a cache `(B*K, 1)`.
            memory: dict from `encode`, leading axis B.
            cache: dict from `init_cache`.
            index: int scalar tensor. Position of this step.
            project: function from decoder states `(..., D)` to logits, such
                as `projection_to` returns. Defaults to the model's own.

        Returns:
            Scores `(B, T, V)`; with a cache `(scores, cache)`.
        """
        raise NotImplementedError

    def init_cache(self, memory, max_length, num_beams=1, project=None):
        """Makes the cache for step-by-step decoding.

        Args:
            memory: dict from `encode`.
            max_length: int or scalar tensor. Number of target positions.
            num_beams: int or scalar tensor. Hypotheses K per sentence.
            project: as in `decode`.

        Returns:
            Dict of nested dicts of tensors. `"static"` ones have a row per
            sentence (B). `"dynamic"` ones have a row `b * K + k` per hypothesis
            (B*K), which a search re-orders with the hypotheses. `"history"`
            ones have an axis 2 of M*K slots, of which slot `m * K + k` is
            position m of hypothesis k, and are never re-ordered. The search
            re-orders only the table `"ancestors"` `(B, K, M)` among them: the
            number that each hypothesis had at each position
            (`masks.ancestor_mask`). The table exists only if `num_beams` is not
            1.
        """
        raise NotImplementedError

    def projection_to(self, target_ids):
        """Restricts the projection to logits to some target tokens.

        Args:
            target_ids: int tensor `(W,)`.

        Returns:
            Function from decoder states `(..., D)` to logits `(..., W)`, the
            columns of the model's own that belong to these tokens.
        """
        raise NotImplementedError

    def repeated_projection(self, num_states):
        """Prepares the projection to logits for many calls.

        All that does not depend on the states is computed here, once.

        Args:
            num_states: int. The number of states of each call, or `None` if it
                is not known.

        Returns:
            Function from decoder states `(..., D)` to logits `(..., V)`, for
            `project` of `decode`, or `None` if the model's own is as good.
        """
        return None

    def log_probs(self, scores):
        """Converts scores to float32 natural log-probabilities.

        Args:
            scores: float tensor `(..., V)` from `decode`.

        Returns:
            Float32 tensor `(..., V)`.
        """
        scores = ops.cast(scores, "float32")
        fused = self.output_fusion is not None
        return scores if fused else ops.log_softmax(scores, axis=-1)

    def compile(
        self,
        optimizer="adam",
        loss=None,
        *,
        jit_compile=True,
        gradient_accumulation_steps=1,
        activation_checkpointing=False,
        objective_terms=(),
        **kwargs,
    ):
        """Configures the model for training.

        Args:
            optimizer: Keras optimizer, its name or configuration, without
                `gradient_accumulation_steps` of its own.
            loss: loss of each token: a `keras.losses.Loss` whose
                `call(labels, log_probs)` takes labels `(B, T)` and natural
                log-probabilities `(B, T, V)` and returns `(B, T)` values; such
                a function; a name from `losses.list_losses()`; or Keras'
                sparse categorical cross-entropy, by name or as an object,
                computed from the model's log-probabilities whatever its
                `from_logits`. It is averaged over the real tokens, whatever
                its `reduction`. Defaults to `LabelSmoothedCrossEntropy(0.1)`.
            jit_compile: bool. Whether the step is compiled by XLA.
            gradient_accumulation_steps: int. Number of parts of a batch that
                are computed one after another, to save memory.
            activation_checkpointing: bool. Whether an update keeps only the
                inputs of the encoder's and decoder's blocks and computes each
                block again in the backward pass (Chen et al., 2016), to save
                memory. Updates are the same, dropout included.
            objective_terms: list of `models.ObjectiveTerm` objects, such as
                `models.RDrop`, `models.ScheduledSampling`,
                `models.Distillation` and `models.GuidedAlignment`. A teacher
                and alignments are not saved with the model: compile a loaded
                model again.
            **kwargs: other arguments of `keras.Model.compile`; `metrics`,
                `weighted_metrics`, `loss_weights` and `steps_per_execution`
                are not supported.

        Raises:
            ValueError: if `gradient_accumulation_steps` is below 1 or one of
                the optimizer, `objective_terms` is no list, a term cannot be
                used with the model, the loss does not give one value per
                token, `activation_checkpointing` is asked of a model without
                blocks or with a term that reads attention, or an argument is
                not supported.
        """
        if not isinstance(objective_terms, Iterable):
            raise ValueError(
                "`objective_terms` must be a list of `models.ObjectiveTerm` "
                f"objects. Received: objective_terms={objective_terms!r}."
            )
        terms = (*take_earlier_arguments(kwargs), *objective_terms)
        refuse_metrics(kwargs)
        refuse_several_steps(kwargs)
        optimizer = keras.optimizers.get(optimizer)
        refuse_accumulating_optimizer(optimizer)
        if gradient_accumulation_steps < 1:
            raise ValueError(
                "`gradient_accumulation_steps` must be at least 1. Received: "
                f"gradient_accumulation_steps={gradient_accumulation_steps}."
            )
        self.objective = Objective(terms)
        self.objective.check(self)
        # Kept when compiled again: random states are matched by their order.
        draws = self.objective.needs_random_numbers
        if draws and self.sampling_generator is None:
            self.sampling_generator = keras.random.SeedGenerator()
        self.gradient_accumulation_steps = gradient_accumulation_steps
        self._checkpoint_activations(activation_checkpointing)
        self.token_loss = make_token_loss(loss, self.output.shape[-1])
        self.step_jit_compile = bool(jit_compile)
        # Keras does not keep the second one where it can be read.
        self._other_options = {
            name: bool(kwargs[name])
            for name in ("run_eagerly", "auto_scale_loss")
            if name in kwargs
        }
        super().compile(
            optimizer=optimizer,
            jit_compile=self._keras_jit_compile(),
            **kwargs,
        )

    def _checkpoint_activations(self, is_on):
        blocks = [layer for layer in self.layers if isinstance(layer, Block)]
        if is_on and not blocks:
            raise ValueError(
                "`activation_checkpointing` computes the blocks of a model "
                "again, such as `layers.TransformerEncoderBlock`. Received: "
                f"{type(self).__name__}, which has none. Leave it out."
            )
        if is_on and self.objective.needs_attention:
            raise ValueError(
                "`activation_checkpointing` does not keep the attention that "
                "a term of the objective needs, such as `GuidedAlignment`. "
                "Leave one of them out."
            )
        self.activation_checkpointing = bool(is_on)
        for block in blocks:
            block.recomputes_activations = self.activation_checkpointing

    def fit(self, x=None, y=None, batch_size=None, **kwargs):
        """Trains the model; batches may differ in shape.

        Under a strategy each replica takes an equal part of the rows of a
        batch; padding rows are added if they do not divide evenly.

        Args:
            x: `tf.data.Dataset`, generator or Grain dataset of batches
                `({"source_ids", "target_ids"}, labels)`, or a dict of arrays.
            y: labels, only with a dict of arrays.
            batch_size: rows of a batch, only with a dict of arrays.
            **kwargs: other arguments of `keras.Model.fit`; `sample_weight`
                and `class_weight` are not supported.

        Returns:
            A `keras.callbacks.History`: `loss` in nats per real token,
            `tokens`, the number of real target tokens in the epoch, and both
            for validation.

        Raises:
            ValueError: if, on TensorFlow, the number of batches is unknown
                and `steps_per_epoch` is not given; if `validation_split` is
                given without arrays, the model is not compiled, or an argument
                is not supported.
        """
        check_compiled(self, "fit")
        refuse_weights(
            sample_weight=kwargs.pop("sample_weight", None),
            class_weight=kwargs.pop("class_weight", None),
        )
        check_arrays(x, y)
        validation_split = kwargs.pop("validation_split", 0.0)
        if validation_split and kwargs.get("validation_data") is None:
            x, y, kwargs["validation_data"] = split_validation(
                x, y, validation_split
            )
        x, y = self._batches(
            x,
            y,
            batch_size,
            kwargs.get("steps_per_epoch"),
            shuffle=kwargs.get("shuffle", True),
            is_training=True,
        )
        validation = kwargs.get("validation_data")
        if validation is not None:
            validation = unpack_validation(validation)
            check_arrays(*validation)
            kwargs["validation_data"] = self._batches(
                *validation,
                kwargs.get("validation_batch_size") or batch_size,
                kwargs.get("validation_steps"),
            )
        if y is None:
            # The dataset orders its batches; Keras would warn about `shuffle`.
            kwargs["shuffle"] = False
            batch_size = None
        if not self._seeds_are_spread:
            self.spread_seeds()
        with self._devices():
            return super().fit(x, y, batch_size=batch_size, **kwargs)

    def evaluate(self, x=None, y=None, batch_size=None, **kwargs):
        """Computes the loss per token; batches may differ in shape.

        Args:
            x: as in `fit`.
            y: as in `fit`.
            batch_size: as in `fit`.
            **kwargs: other arguments of `keras.Model.evaluate`.

        Returns:
            As `keras.Model.evaluate`: `loss` in nats per real token, without
            label smoothing, and `tokens`, the number of real target tokens.

        Raises:
            ValueError: if, on TensorFlow, `x` is a generator or another
                iterable of unknown length and `steps` is not given; if the
                model is not compiled, or an argument is not supported.
        """
        check_compiled(self, "evaluate")
        refuse_weights(sample_weight=kwargs.pop("sample_weight", None))
        check_arrays(x, y)
        steps = kwargs.get("steps")
        x, y = self._batches(x, y, batch_size, steps)
        batch_size = None if y is None else batch_size
        with self._devices(), quiet_at_the_end_of_data(steps):
            return super().evaluate(x, y, batch_size=batch_size, **kwargs)

    def train_on_batch(
        self,
        x,
        y=None,
        sample_weight=None,
        class_weight=None,
        return_dict=False,
    ):
        """Makes one update.

        Args:
            x: dict `{"source_ids": (B, S), "target_ids": (B, T)}` of arrays,
                the global batch.
            y: labels `(B, T)`.
            sample_weight: not supported.
            class_weight: not supported.
            return_dict: bool. Whether to return a dict.

        Returns:
            List `[loss, tokens]` of the batch, as in `fit`, or a dict.

        Raises:
            ValueError: if the model is not compiled, or an argument is not
                supported.
        """
        check_compiled(self, "train_on_batch")
        refuse_weights(sample_weight=sample_weight, class_weight=class_weight)
        check_arrays(x, y)
        if not self._seeds_are_spread:
            self.spread_seeds()
        with self._devices():
            x, y = fill_rows((dict(x), y), self._row_multiple())
            return super().train_on_batch(x, y, return_dict=return_dict)

    def test_on_batch(self, x, y=None, sample_weight=None, return_dict=False):
        """Computes the loss of one batch without label smoothing.

        Args:
            x: as in `train_on_batch`.
            y: as in `train_on_batch`.
            sample_weight: not supported.
            return_dict: bool. Whether to return a dict.

        Returns:
            List `[loss, tokens]` of the batch, as in `evaluate`, or a dict.

        Raises:
            ValueError: as in `train_on_batch`.
        """
        check_compiled(self, "test_on_batch")
        refuse_weights(sample_weight=sample_weight)
        check_arrays(x, y)
        with self._devices():
            x, y = fill_rows((dict(x), y), self._row_multiple())
            return super().test_on_batch(x, y, return_dict=return_dict)

    def save(self, filepath, overwrite=True, zipped=None, **kwargs):
        """Saves the model as a `.keras` file.

        Args:
            filepath: path of the file.
            overwrite: bool. Whether to replace a file without a question.
            zipped: bool. Whether the file is a zip archive.
            **kwargs: other arguments of `keras.Model.save`.

        Raises:
            ValueError: for int4 weights, and for int8 weights of a model that
                was loaded, which Keras could not load again.
        """
        check_keras_file(self)
        super().save(filepath, overwrite, zipped, **kwargs)

    def save_to_preset(self, preset_dir, max_shard_size=10):
        """Saves the model as a preset folder.

        Args:
            preset_dir: path of the folder.
            max_shard_size: float. Size in GB above which the weights are
                divided into several files.

        Raises:
            ValueError: for a quantized model, which keras-hub could not load
                again.
        """
        check_preset(self)
        super().save_to_preset(preset_dir, max_shard_size)

    def export(
        self,
        filepath,
        format="tf_saved_model",
        verbose=None,
        input_signature=None,
        **kwargs,
    ):
        """Writes the network for another engine: ids in, scores out.

        Args:
            filepath: path of the file or folder; for LiteRT it ends in
                `.tflite`.
            format: str. As in `keras.Model.export`: `"tf_saved_model"`,
                `"onnx"`, `"litert"`, `"openvino"` or `"torch"`.
            verbose: bool. Whether to print where the file is.
            input_signature: structure of `keras.InputSpec`. Defaults to open
                sizes.
            **kwargs: other arguments of `keras.Model.export`.

        Raises:
            ValueError: if LiteRT could not run the file. Nothing is written
                then.
        """
        if format == "onnx" and input_signature is None:
            # Keras finds it itself only if the model was called.
            input_signature = [self.input]
        options = {"input_signature": input_signature, **kwargs}
        is_tensorflow = keras.config.backend() == "tensorflow"
        if format != "litert" or not is_tensorflow or "target_spec" in kwargs:
            super().export(filepath, format, verbose, **options)
            return
        with atomic_file(filepath) as temporary:
            super().export(temporary, format, False, **options)
            check_operations(temporary)
        if verbose is None or verbose:
            print(f"Saved artifact at '{filepath}'.")

    def get_compile_config(self):
        if not self.compiled:
            return None
        config = {
            "optimizer": keras.saving.serialize_keras_object(self.optimizer),
            "loss": keras.saving.serialize_keras_object(self.token_loss),
            "jit_compile": self.step_jit_compile,
            "gradient_accumulation_steps": self.gradient_accumulation_steps,
            **self._other_options,
        }
        # Left out if off: earlier versions then load the model.
        if self.activation_checkpointing:
            config["activation_checkpointing"] = True
        if terms := [term for term in self.objective.terms if term.is_saved]:
            config["objective_terms"] = keras.saving.serialize_keras_object(
                terms
            )
        return config

    def compile_from_config(self, config):
        self.compile(
            **{
                name: keras.saving.deserialize_keras_object(value)
                for name, value in config.items()
            }
        )
        # On TensorFlow `compile` has built it. Built again, it would have a new
        # loss scale and new counts instead of the loaded variables.
        if not self.optimizer.built:
            self.optimizer.build(self.trainable_variables)

    def sum_token_losses(self, labels, scores, training):
        """Sums the loss over the real tokens of a batch.

        Training uses the compiled loss, evaluation the plain negative
        log-likelihood, so that `val_loss` does not depend on smoothing.

        Args:
            labels: int tensor `(B, T)`; 0 is padding.
            scores: float tensor `(B, T, V)`.
            training: bool.

        Returns:
            Tuple `(sum in nats, number of real tokens)`, float32 scalars.
        """
        real = padding_mask(labels)
        losses = self._token_losses(labels, scores, training)
        losses = ops.where(real, losses, ops.zeros_like(losses))
        return ops.sum(losses), ops.sum(ops.cast(real, "float32"))

    def _token_losses(self, labels, scores, training):
        """Returns the losses `(B, T)` of scores `(B, T, V)`."""
        has_log_probs = self.output_fusion is not None
        if not training:
            if has_log_probs:
                return negative_log_likelihood(labels, self.log_probs(scores))
            return cross_entropy_of_scores(labels, scores)
        if has_log_probs or not computes_from_scores(self.token_loss):
            return self.token_loss.call(labels, self.log_probs(scores))
        return self.token_loss.from_scores(labels, scores)
