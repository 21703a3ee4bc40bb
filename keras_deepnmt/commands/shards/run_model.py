"""A run that translates many files."""

from collections.abc import Mapping, Sequence
from typing import Any

from jsonargparse import Namespace

from keras_deepnmt.commands.options.decoding import load_translator
from keras_deepnmt.data.tags import check_has_tag
from keras_deepnmt.files import lines_sha256


class RunModel:
    """A run, a preset folder, a trained model, or a checkpoint of a run.

    `options` are those of `deepnmt translate-files`. `sha256` is a hash of what
    the model computes. `versions` is empty: no other package is noted.
    """

    def __init__(self, options: Namespace):
        from keras_deepnmt.runs.checkpoints import open_run

        self._options = options
        self.versions: dict[str, str] = {}
        self._run = run = open_run(options.run, options.checkpoint)
        # Now, since the folder of the output records the options.
        tag = options.tag
        if options.target_language is not None:
            tag = run.directions.tag_of(options.target_language)
        if tag is not None:
            check_has_tag(
                getattr(run, f"{run.tag_side}_tokenizer"),
                tag,
                "Give one that stands before the training text, or none.",
                run.tag_side,
            )
        parts = (
            run.weights_sha256,
            run.source_tokenizer.sha256,
            run.target_tokenizer.sha256,
            str(run.summary.get("overrides")),
        )
        self.sha256 = lines_sha256(parts)

    def made_of(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Returns what translations depend on, by the names of options.

        `given` are the decoding options of the command.
        """
        from keras_deepnmt.decoding.options import SearchOptions
        from keras_deepnmt.translator.loading import with_run_options

        values = with_run_options(given, self._run.decoding)
        found = SearchOptions.from_mapping(values).as_dict()
        for name in ("batch_size", "batch_tokens", "max_source_length", "tag"):
            found[name] = values.get(name)
        # Folders of earlier versions lack it.
        if values.get("target_language") is not None:
            found["target_language"] = values["target_language"]
        return {**found, "compile": self._options.compile}

    def load(self) -> None:
        """Gets ready to translate."""
        translator = load_translator(self._options)
        if self._options.compile is False:
            translator = translator.replaced(compiled=False)
        self._translator = translator
        self._state = translator.steady_search_state(
            self._options.num_hypotheses
        )
        self.max_source_length = translator.max_source_length

    def translate(
        self, texts: Sequence[str]
    ) -> tuple[list[list[Any]], list[int]]:
        """Returns the hypotheses of each text, and the places of texts cut.

        They depend on the texts alone, and on nothing translated before.
        """
        cut: list[int] = []
        self._translator.search_state = self._state
        self._translator.on_truncated = cut.extend
        number = self._options.num_hypotheses
        return self._translator.translate_nbest(texts, number), cut
