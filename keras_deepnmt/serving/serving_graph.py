"""The exported graph, which takes text and returns text and scores."""

import re
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from keras_deepnmt.data.context import mark_id, tag_length
from keras_deepnmt.decoding.hypotheses import longest_output
from keras_deepnmt.decoding.options import SearchOptionAttributes
from keras_deepnmt.decoding.scoring import score_targets
from keras_deepnmt.errors import UserError
from keras_deepnmt.masks import BEGIN_ID, END_ID, PADDING_ID
from keras_deepnmt.serving.given_in_graph import (
    find_given,
    read_given,
    rows_to_find,
)
from keras_deepnmt.serving.graph_search import search_in_graph

if TYPE_CHECKING:
    from keras_deepnmt.translator import Translator

# There is room for so many tokens of a translation: one request must not use up
# the memory of a server.
_LARGEST_LENGTH = 100_000
# The white space of `str.split`: `\s` of TensorFlow is that of ASCII.
_SPACE = "[{}]".format(
    "".join(rf"\x{{{n:x}}}" for n in range(1 << 14) if chr(n).isspace())
)


class ServingGraph(SearchOptionAttributes):
    """A translator as four TensorFlow functions, tokenizers included.

    The functions run in Python as they run on a server: graphs without XLA, on
    any number of sentences of any length. Sentences are padded to the longest
    of their batch. The model's weights are read at each call, or, in another
    type than float32, copied once. The translator's tag, if it has one, stands
    before each text that is not empty, or, where the model has its tags on the
    target side, at the beginning of each translation, whose text lacks it. Such
    a model without a tag of its own takes those that texts begin with.

    The stored weights have the type `dtype`; those of `"bfloat16"` are cast to
    float32 once in each call. `search_options` are fields of
    `decoding.SearchOptions` that replace the translator's. They are constants
    of the graph, except for `length_penalty`, which `translate_nbest` and
    `translate_given` take.

    Attributes:
        options: the `SearchOptions`.
        num_tag_tokens: number of tokens of a translation that are a tag, at
            most.
        signatures: dict from signature name to `tf.function`:
            `serving_default(text (B,))` returns `text`, `score` and `truncated`
            `(B,)`;
            `translate_nbest(text (B,), num_hypotheses, length_penalty)` returns
            `text`, `score`, `log_prob` and `truncated` `(B, num_hypotheses)`;
            `translate_given(text (B,), prefix (B,), constraints (B, C),
            max_length (B,), num_hypotheses, length_penalty)` returns the same
            and `constraints_met`; an empty string and the length 0 ask for
            nothing, as an empty array does;
            `score(source (B,), target (B,))` returns `log_prob` and
            `num_tokens` `(B,)` and `token_log_prob` `(B, T)`. All of them
            return `source_truncated` `(B,)`, whether a source was longer than
            `max_source_length` and the rest of it ignored. `truncated` and
            `constraints_met` are those of a translator's `Hypothesis`. A text
            without an axis is a batch of one.
    """

    def __init__(
        self,
        translator: "Translator",
        dtype: str = "float32",
        **search_options: Any,
    ):
        if translator.shortlists is not None:
            raise UserError(
                "An export for TensorFlow Serving has no shortlists. Export "
                "the translator without: `translator.replaced(shortlists=None)`"
                "."
            )
        self.model = translator.model
        self.dtype = dtype
        self._weights = [
            _stored(weight, dtype) for weight in self.model.weights
        ]
        self.max_source_length = translator.max_source_length
        self.tag = translator.tag
        self.tag_side = translator.tag_side
        self._known_tags = translator.training_tags
        self._context_mark = mark_id(translator.source_tokenizer)
        # Ids of each tag that a source may begin with.
        self._source_tag_lengths = {}
        if self.tag_side == "source":
            self._source_tag_lengths = {
                tag: tag_length(translator.source_tokenizer, tag)
                for tag in ([self.tag] if self.tag else self._known_tags)
            }
        self._lone_tags = translator.source_tokenizer.encode(
            [] if self.tag else list(self._source_tag_lengths)
        )
        # Of those that a translation may begin with.
        self.num_tag_tokens = 0
        if self.tag_side == "target":
            tags = [self.tag] if self.tag else self._known_tags
            rows = translator.target_tokenizer.encode(list(tags))
            self.num_tag_tokens = max(map(len, rows), default=0)
        self.options = translator.options.updated(**search_options)
        self.source_tokenizer = translator.source_tokenizer.in_graph_tokenizer()
        self.target_tokenizer = translator.target_tokenizer.in_graph_tokenizer()
        # One graph for two signatures, which makes the export smaller.
        self._plain_search = tf.function(
            self.search,
            input_signature=[
                _string_spec("text"),
                tf.TensorSpec((), tf.float32, "length_penalty"),
            ],
            autograph=False,
        )
        self.signatures = {
            "serving_default": self._translate_function(),
            "translate_nbest": self._nbest_function(),
            "translate_given": self._given_function(),
            "score": self._score_function(),
        }

    def module(self) -> tf.Module:
        """Makes the `tf.Module` to save: weights, tokenizers and functions.

        The Keras model is not part of it; its weights are plain variables.
        """
        module = tf.Module(name="translator")
        module.model_weights = self._weights
        module.source_tokenizer = self.source_tokenizer
        module.target_tokenizer = self.target_tokenizer
        for name, function in self.signatures.items():
            setattr(module, name, function)
        return module

    def _with_weights(self):
        """Lets the model compute with the stored weights."""
        copies = [
            (weight, tf.cast(stored, weight.dtype))
            for weight, stored in zip(
                self.model.weights, self._weights, strict=True
            )
            if stored is not weight.value
        ]
        return keras.StatelessScope(copies) if copies else nullcontext()

    def _translate_function(self):
        @tf.function(input_signature=[_string_spec("text")], autograph=False)
        def translate(text):
            text = _as_batch(text)
            outputs = self._plain_search(text, tf.constant(self.length_penalty))
            return {
                "source_truncated": outputs["source_truncated"],
                **{
                    name: outputs[name][:, 0]
                    for name in ("text", "score", "truncated")
                },
            }

        return translate

    def _nbest_function(self):
        # Defaults make the two numbers optional for TensorFlow Serving.
        all_beams = tf.constant(self.num_beams)
        usual_penalty = tf.constant(self.length_penalty)

        @tf.function(
            input_signature=[
                _string_spec("text"),
                tf.TensorSpec((), tf.int32, "num_hypotheses"),
                tf.TensorSpec((), tf.float32, "length_penalty"),
            ],
            autograph=False,
        )
        def translate_nbest(
            text,
            num_hypotheses=all_beams,
            length_penalty=usual_penalty,
        ):
            length_penalty = self._checked(num_hypotheses, length_penalty)
            outputs = self._plain_search(_as_batch(text), length_penalty)
            return {
                "source_truncated": outputs["source_truncated"],
                **{
                    name: outputs[name][:, :num_hypotheses]
                    for name in ("text", "score", "log_prob", "truncated")
                },
            }

        return translate_nbest

    def _given_function(self):
        # Inputs that are left out ask for nothing.
        no_texts = tf.constant([], tf.string)
        no_phrases = tf.constant([], tf.string, (0, 0))
        no_lengths = tf.constant([], tf.int32)
        all_beams = tf.constant(self.num_beams)
        usual_penalty = tf.constant(self.length_penalty)

        @tf.function(
            input_signature=[
                _string_spec("text"),
                _string_spec("prefix"),
                tf.TensorSpec((None, None), tf.string, "constraints"),
                tf.TensorSpec((None,), tf.int32, "max_length"),
                tf.TensorSpec((), tf.int32, "num_hypotheses"),
                tf.TensorSpec((), tf.float32, "length_penalty"),
            ],
            autograph=False,
        )
        def translate_given(
            text,
            prefix=no_texts,
            constraints=no_phrases,
            max_length=no_lengths,
            num_hypotheses=all_beams,
            length_penalty=usual_penalty,
        ):
            length_penalty = self._checked(num_hypotheses, length_penalty)
            outputs = self.search(
                text, length_penalty, (prefix, constraints, max_length)
            )
            return {
                "source_truncated": outputs["source_truncated"],
                **{
                    name: outputs[name][:, :num_hypotheses]
                    for name in (
                        *("text", "score", "log_prob", "truncated"),
                        "constraints_met",
                    )
                },
            }

        return translate_given

    def _checked(self, num_hypotheses, length_penalty):
        """Refuses wrong numbers; returns the length penalty."""
        checks = [
            _check_range(num_hypotheses, self.num_beams),
            tf.debugging.assert_non_negative(
                length_penalty, "length_penalty must be at least 0."
            ),
        ]
        with tf.control_dependencies(checks):
            return tf.identity(length_penalty)

    def _score_function(self):
        @tf.function(
            input_signature=[_string_spec("source"), _string_spec("target")],
            autograph=False,
        )
        def score(source, target):
            source, target = _as_batch(source), _as_batch(target)
            same_length = tf.debugging.assert_equal(
                tf.shape(source)[0],
                tf.shape(target)[0],
                "source and target must have the same length.",
            )
            with tf.control_dependencies([same_length]):
                source, batch_size = _at_least_one(source)
                target, _ = _at_least_one(target)
            rows, is_truncated, tags = self._source_rows(source)
            labels = self._labels(_tagged(target, tags))
            begin = tf.fill((tf.shape(labels)[0], 1), BEGIN_ID)
            with self._with_weights():
                token_log_probs = score_targets(
                    self.model,
                    rows.to_tensor(PADDING_ID),
                    # The end id is not an input: no token follows it.
                    tf.concat([begin, _without_end(labels)[:, :-1]], axis=1),
                    labels,
                )[:batch_size]
            is_real = tf.not_equal(labels[:batch_size], PADDING_ID)
            return {
                "log_prob": tf.reduce_sum(token_log_probs, axis=1),
                "num_tokens": tf.reduce_sum(tf.cast(is_real, tf.int32), axis=1),
                "token_log_prob": token_log_probs,
                "source_truncated": is_truncated[:batch_size],
            }

        return score

    def search(
        self,
        text: tf.Tensor,
        length_penalty: float | tf.Tensor,
        given: tuple[tf.Tensor, tf.Tensor, tf.Tensor] | None = None,
    ) -> dict[str, tf.Tensor]:
        """Translates a batch of sentences `(B,)`.

        `given` are prefixes, phrases and maximum lengths, as the signature
        `translate_given` takes them.

        Returns a dict of `text`, `score`, `log_prob` and `truncated` `(B, K)`,
        `ids` `(B, K, M)` and `source_truncated` `(B,)`, and of
        `constraints_met` `(B, K)` if something may be given. A hypothesis that
        does not exist has score minus infinity. An empty sentence has one
        hypothesis: empty, with score 0. Of several hypotheses with the same
        text only the first exists, unless they are drawn, as for a translator.
        """
        text, batch_size = _at_least_one(_as_batch(text))
        rows, is_truncated, tags = self._source_rows(text)
        # A row with only the end id is an empty sentence, which the search gets
        # as a row of padding.
        is_empty = rows.row_lengths() <= 1
        source_ids = tf.where(
            is_empty[:, None], PADDING_ID, rows.to_tensor(PADDING_ID)
        )
        texts, arrays, longest = None, {}, 0
        if given is not None:
            texts, arrays, longest = self._given(given, tf.shape(text)[0], tags)
        elif tags is not None:
            arrays, longest = self._tags_alone(tags)
        usual = longest_output(tf.shape(source_ids)[1], self.options)
        with self._with_weights():
            outputs = search_in_graph(
                self.model,
                source_ids,
                options=self.options.updated(length_penalty=length_penalty),
                max_length=tf.maximum(usual, longest),
                **arrays,
            )
        # An empty sentence has one translation, empty and with probability 1.
        is_first = tf.range(self.num_beams)[None] == 0  # (1, K)
        is_certain = tf.logical_and(is_empty[:, None], is_first)
        found = {
            "text": _without_tags(self._texts(outputs["ids"]), tags),
            "score": tf.where(is_certain, 0.0, outputs["scores"]),
            "log_prob": tf.where(is_certain, 0.0, outputs["log_probs"]),
            "truncated": outputs["truncated"],
            "ids": outputs["ids"],
        }
        if texts is not None:
            found = self._with_given(found, texts, is_empty, tags)
        if not self.sampling:
            found = _without_repeated(found)
        found["source_truncated"] = is_truncated
        return {name: x[:batch_size] for name, x in found.items()}

    def _tags_alone(self, tags):
        """Arrays for a search that begins with tags, and the least length."""
        prefix_ids = read_given(
            self.target_tokenizer, tags, tf.fill((tf.size(tags), 0), "")
        ).prefix_ids
        return {"prefix_ids": prefix_ids}, tf.shape(prefix_ids)[1] + 1

    def _given(self, given, num_sentences, tags):
        """Reads what is given: its texts, arrays for a search, least length."""
        prefix, constraints, max_length = given
        prefix = _as_batch(prefix, "prefix", "texts")
        prefix = _tagged(_for_each(prefix, num_sentences, "prefix"), tags)
        own_limits = _as_batch(max_length, "max_length", "numbers")
        own_limits = _for_each(own_limits, num_sentences, "max_length")
        texts = read_given(
            self.target_tokenizer,
            prefix,
            _phrases_of_each(constraints, num_sentences),
        )
        length = tf.shape(texts.prefix_ids)[1]
        checks = [
            tf.debugging.assert_non_negative(
                own_limits, "max_length must be at least 1, or 0 for none."
            ),
            tf.debugging.assert_less_equal(
                own_limits,
                _LARGEST_LENGTH,
                f"max_length must be at most {_LARGEST_LENGTH:,}.",
            ),
        ]
        if self.model.max_length is not None:
            most = self.model.max_length - 1
            checks.append(
                tf.debugging.assert_less_equal(
                    length, most, f"A prefix must have at most {most} tokens."
                )
            )
        arrays = {"prefix_ids": texts.prefix_ids, "max_lengths": own_limits}
        if self.finds_phrases:
            arrays["constraint_ids"] = rows_to_find(texts)
        else:
            checks.append(
                tf.debugging.assert_equal(
                    tf.reduce_max(texts.phrase_ids),
                    PADDING_ID,
                    "constraints need an export with at least 2 beams in each "
                    "group and without sampling.",
                )
            )
        with tf.control_dependencies(checks):
            longest = tf.maximum(length + 1, tf.reduce_max(own_limits))
        return texts, arrays, longest

    @property
    def finds_phrases(self) -> bool:
        """Whether the search can find phrases, see `phrases.check_beams`."""
        group_size = self.num_beams // self.num_groups
        return group_size > 1 and not self.sampling

    def _with_given(self, found, texts, is_empty, tags):
        """Puts given characters in; what has all that was given comes first."""
        given, has_all = find_given(found["ids"], texts)
        shape = tf.shape(found["ids"])
        flat = (-1, shape[2])
        joined = self.target_tokenizer.detokenize_given(
            tf.reshape(found["ids"], flat), tf.reshape(given, flat)
        )
        has_none = tf.reduce_all(texts.prefix_ids == PADDING_ID, axis=1)
        has_none &= tf.reduce_all(texts.phrase_ids == PADDING_ID, axis=(1, 2))
        found["text"] = tf.where(
            tf.reduce_any(given != "", axis=-1),
            _without_tags(tf.reshape(joined, shape[:2]), tags),
            found["text"],
        )
        is_met = tf.where(is_empty[:, None], has_none[:, None], has_all)
        is_met &= tf.math.is_finite(found["score"])
        found["constraints_met"] = is_met
        return _those_first(is_met, found)

    def _source_rows(self, text):
        """Returns ids, whether they were cut, and tags of targets or `None`."""
        tags = None
        if self.tag_side == "target":
            text, tags = self._taken_off(text)
        ids = self.source_tokenizer.tokenize(text)
        if tags is not None:
            tags = tf.where(tf.equal(ids.row_lengths(), 0), "", tags)
        elif self.tag is not None:
            is_empty = tf.equal(ids.row_lengths(), 0)
            tagged = tf.strings.join([f"{self.tag} ", text])
            ids = self.source_tokenizer.tokenize(
                tf.where(is_empty, text, tagged)
            )
        if self._lone_tags:
            ids = _without_lone_tags(ids, self._lone_tags)
        most = self.max_source_length - 1  # the end id is added
        if self._context_mark is not None:
            ids = _shorter_context(
                ids, most, self._context_mark, self._num_tag_ids(text)
            )
        return _with_end(ids[:, :most]), ids.row_lengths() > most, tags

    def _num_tag_ids(self, text):
        """Returns how many ids of each source are its tag: `(B, 1)`."""
        if self.tag is not None:
            return self._source_tag_lengths.get(self.tag, 0)
        found = tf.zeros(tf.shape(text), tf.int64)
        for tag, length in self._source_tag_lengths.items():
            begins = rf"(?s)\A{_SPACE}*{re.escape(tag)}(?:{_SPACE}.*)?\z"
            is_tagged = tf.strings.regex_full_match(text, begins)
            found = tf.where(is_tagged, tf.constant(length, tf.int64), found)
        return found[:, None]

    def _taken_off(self, text):
        """Takes the tags off sources, as `Translator.tagged` does."""
        if self.tag is not None:
            return text, tf.fill(tf.shape(text), self.tag)
        known = "|".join(map(re.escape, self._known_tags))
        if not known:
            return text, None
        # A tag may be the beginning of another one, but not of a word.
        own = rf"(?s)\A{_SPACE}*({known})(?:{_SPACE}+(.*))?\z"
        has_tag = tf.strings.regex_full_match(text, own)
        tags = tf.strings.regex_replace(text, own, r"\1")
        rest = tf.strings.regex_replace(text, own, r"\2")
        return (
            tf.where(has_tag, rest, text),
            tf.where(has_tag, tags, tf.zeros_like(tags)),
        )

    def _labels(self, target):
        rows = _with_end(self.target_tokenizer.tokenize(target))
        if self.model.max_length is None:
            return rows.to_tensor(PADDING_ID)
        fits = tf.debugging.assert_less_equal(
            tf.reduce_max(rows.row_lengths()),
            tf.constant(self.model.max_length, tf.int64),
            f"A target must have at most {self.model.max_length - 1} tokens.",
        )
        with tf.control_dependencies([fits]):
            return rows.to_tensor(PADDING_ID)

    def _texts(self, ids):
        is_piece = tf.logical_and(
            tf.not_equal(ids, PADDING_ID), tf.not_equal(ids, END_ID)
        )
        shape = tf.shape(ids)
        length = shape[2]
        pieces = tf.ragged.boolean_mask(
            tf.reshape(ids, (-1, length)), tf.reshape(is_piece, (-1, length))
        )
        texts = self.target_tokenizer.detokenize(pieces)
        return tf.reshape(texts, (shape[0], self.num_beams))


def _tagged(texts, tags):
    """Puts tags `(B,)` before texts; `""` is none, and `None` none at all."""
    if tags is None:
        return texts
    space = tf.where((tags != "") & (texts != ""), " ", "")
    return tf.strings.join([tags, space, texts])


def _without_tags(texts, tags):
    """Takes the tags off translations `(B, K)` that begin with them."""
    if tags is None:
        return texts
    length = tf.broadcast_to(tf.strings.length(tags)[:, None], tf.shape(texts))
    stripped = tf.strings.regex_replace(texts, r"\A +", "")
    zeros = tf.zeros_like(length)
    begins = (length > 0) & (
        tf.strings.substr(stripped, zeros, length) == tags[:, None]
    )
    rest = tf.strings.substr(
        stripped,
        tf.where(begins, length, 0),
        tf.strings.length(stripped),
    )
    rest = tf.strings.regex_replace(rest, r"\A ", "")
    return tf.where(begins, rest, texts)


def _without_lone_tags(ids, tags):
    """Makes the rows of ragged ids `(B, L)` empty that are a tag alone."""
    # So wide that a longer row differs from each of them.
    width = 1 + max(map(len, tags))
    tags = [[*tag, *[PADDING_ID] * (width - len(tag))] for tag in tags]
    first = ids[:, :width].to_tensor(PADDING_ID, shape=(None, width))
    is_alone = tf.reduce_any(
        tf.reduce_all(first[:, None] == tf.constant(tags, ids.dtype), axis=-1),
        axis=-1,
    )
    lengths = tf.where(is_alone, 0, ids.row_lengths())
    return tf.RaggedTensor.from_tensor(ids.to_tensor(PADDING_ID), lengths)


def _shorter_context(ids, most, mark, first):
    """Does what `context.shorten_context` does, for ragged ids `(B, L)`."""
    rows, length = ids.to_tensor(PADDING_ID), ids.row_lengths()[:, None]
    place = tf.range(tf.shape(rows, tf.int64)[1])[None]
    # Where a sentence of the context may begin; 0 is nowhere.
    starts = tf.where((rows == mark) & (place >= first), place + 1, 0)
    fits = (starts > 0) & (first + length - starts <= most)
    first_that_fits = tf.reduce_min(
        tf.where(fits, starts, tf.int64.max), axis=1, keepdims=True
    )
    start = tf.where(
        tf.reduce_any(fits, axis=1, keepdims=True),
        first_that_fits,
        tf.reduce_max(starts, axis=1, keepdims=True),
    )
    is_kept = (length <= most) | (place < first) | (place >= start)
    return tf.ragged.boolean_mask(rows, is_kept & (place < length))


def _those_first(is_first, found):
    """Sorts hypotheses `(B, K, ...)`: those that `is_first` says come first."""
    order = tf.argsort(tf.cast(~is_first, tf.int32), axis=1, stable=True)
    return {
        name: tf.gather(x, order, batch_dims=1) for name, x in found.items()
    }


def _without_repeated(found):
    """Leaves out hypotheses whose text a better one has."""
    text, exists = found["text"], tf.math.is_finite(found["score"])
    number = tf.range(tf.shape(text)[1])
    is_better = number[None] < number[:, None]  # (K, K)
    is_same = text[:, :, None] == text[:, None, :]
    is_same &= exists[:, :, None] & exists[:, None, :]
    is_repeated = tf.reduce_any(is_same & is_better, axis=-1)
    left = {
        name: tf.where(
            is_repeated[..., None] if name == "ids" else is_repeated,
            -float("inf") if x.dtype == tf.float32 else tf.zeros_like(x),
            x,
        )
        for name, x in found.items()
    }
    return _those_first(~is_repeated, left)


def _stored(weight, dtype):
    """The variable of a weight, or a copy in another type than float32."""
    if dtype == "float32" or weight.dtype != "float32":
        return weight.value
    value = tf.cast(weight.value, dtype)
    return tf.Variable(value, trainable=False, name=weight.name)


def _string_spec(name):
    return tf.TensorSpec((None,), tf.string, name)


def _as_batch(values, name="Texts", kind="sentences"):
    # Loaded signatures and TensorFlow Serving take tensors of any rank. The
    # placeholder keeps optimizers from relying on the shape of the signature.
    values = tf.compat.v1.placeholder_with_default(values, shape=None)
    is_batch = tf.debugging.Assert(
        tf.size(tf.shape(values)) <= 1,  # `tf.rank` would be optimized
        [f"{name} must be a list of {kind}. Received an array of shape:"]
        + [tf.shape(values)],
    )
    with tf.control_dependencies([is_batch]):
        return tf.reshape(values, (-1,))


def _at_least_one(text):
    # An empty batch runs as one empty sentence, whose result is then dropped.
    batch_size = tf.shape(text)[0]
    missing = tf.cast(tf.equal(batch_size, 0), tf.int32)
    return tf.concat([text, tf.fill((missing,), "")], axis=0), batch_size


def _for_each(values, num_sentences, name):
    """Returns one value for each sentence; without any they ask for nothing."""
    missing = tf.where(tf.equal(tf.size(values), 0), num_sentences, 0)
    nothing = "" if values.dtype == tf.string else 0
    values = tf.concat([values, tf.fill((missing,), nothing)], axis=0)
    is_one_each = tf.debugging.assert_equal(
        tf.shape(values)[0],
        num_sentences,
        f"{name} must have one value for each sentence.",
    )
    with tf.control_dependencies([is_one_each]):
        return tf.identity(values)


def _phrases_of_each(constraints, num_sentences):
    """Returns phrases `(B, C)`; an array without elements has none."""
    constraints = tf.compat.v1.placeholder_with_default(constraints, shape=None)
    shape = tf.shape(constraints)
    is_none = tf.equal(tf.size(constraints), 0)
    is_one_each = tf.equal(tf.size(shape), 2) & tf.equal(
        tf.concat([shape, [0]], axis=0)[0], num_sentences
    )
    is_right = tf.debugging.Assert(
        is_none | is_one_each,
        [
            "constraints must have one row of phrases for each sentence, "
            "filled up with empty strings. Received an array of shape:",
            shape,
        ],
    )
    with tf.control_dependencies([is_right]):
        each = tf.size(constraints) // num_sentences
        return tf.reshape(constraints, (num_sentences, each))


def _with_end(rows):
    end = tf.fill((rows.nrows(), 1), tf.constant(END_ID, rows.dtype))
    return tf.concat([rows, end], axis=1)


def _without_end(ids):
    return tf.where(tf.equal(ids, END_ID), PADDING_ID, ids)


def _check_range(num_hypotheses, num_beams):
    is_possible = tf.logical_and(
        num_hypotheses >= 1, num_hypotheses <= num_beams
    )
    return tf.debugging.Assert(
        is_possible,
        [
            f"num_hypotheses must lie in 1..{num_beams}. Received:",
            num_hypotheses,
        ],
    )
