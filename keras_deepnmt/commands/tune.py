"""`deepnmt tune`: finds the weights with which runs rerank translations."""

from typing import Literal

from jsonargparse import Namespace

from keras_deepnmt.commands.options.compilation import (
    LazilyCompiled,
    add_compile,
    start_backend,
)
from keras_deepnmt.commands.options.decoding import (
    add_checkpoint,
    add_decoding_options,
    add_ensemble,
    add_tag,
    load_translator,
)
from keras_deepnmt.commands.options.given_lines import (
    GivenLines,
    add_given_lines,
)
from keras_deepnmt.commands.options.output_file import add_output, open_output
from keras_deepnmt.commands.options.own_code import add_import
from keras_deepnmt.commands.options.parser import VerbParser
from keras_deepnmt.commands.options.reranking import (
    RerankingRuns,
    add_rerankers,
    is_reranked,
    scoring_of,
)
from keras_deepnmt.commands.options.scoring import add_scoring
from keras_deepnmt.commands.terminal.console import Console, progress_bar
from keras_deepnmt.commands.terminal.line_faults import source_cut
from keras_deepnmt.commands.terminal.line_warnings import LineWarnings
from keras_deepnmt.errors import UserError

EXAMPLE = """
deepnmt tune runs/demo --rerank runs/larger --rerank-reverse runs/en-de \\
    --num-beams 12 --source valid.de --target valid.en --output weights.json
deepnmt translate runs/demo --rerank runs/larger --rerank-reverse runs/en-de \\
    --num-beams 12 --rerank-weights weights.json < test.de > test.en
"""
CONTINUE = "Nothing was written; run the same command again."
_NAMES = {"bleu": "BLEU", "chrf": "chrF"}


def add_options(parser: VerbParser) -> None:
    """Adds the options of `deepnmt tune`."""
    add_ensemble(parser)
    add_rerankers(parser)
    for side in ("source", "target"):
        parser.add_argument(
            f"--{side}",
            required=True,
            metavar="FILE",
            help=f"Text file with the {side} side of a validation text, one "
            "sentence per line, plain or compressed.",
        )
    parser.add_argument(
        "--metric",
        type=Literal["bleu", "chrf"],
        default="bleu",
        help="Score of the whole text that the weights make best.",
    )
    add_scoring(parser)
    add_tag(parser)
    add_output(parser)
    add_decoding_options(parser)
    add_given_lines(parser)
    add_checkpoint(parser)
    add_compile(parser)
    add_import(parser)


def run(options: Namespace) -> None:
    """Translates a validation text, and prints the best weights as JSON."""
    if not is_reranked(options):
        raise UserError("needs --rerank or --rerank-reverse.")
    # Before the imports, which would print the messages of the backend.
    start_backend()
    from keras_deepnmt.reranking.weights_file import weights_text
    from keras_deepnmt.runs.evaluate import read_pairs
    from keras_deepnmt.runs.scores_file import given_sha256

    console = Console(options.quiet)
    with (
        open_output(options.output) as output,
        LineWarnings(options.source) as warnings,
    ):
        sources, references = read_pairs(options.source, options.target)
        scoring = _scoring(options, references, console.print)
        translator = load_translator(options)
        if translator.num_beams == 1:
            raise UserError(
                "`--num-beams` must be at least 2, so that there are several "
                "translations to choose from. Received: 1"
            )
        if options.constraints is not None:
            from keras_deepnmt.decoding.phrases import check_beams

            check_beams(translator.options)
        lines = GivenLines(options)
        given = lines.take(len(sources), translator)
        lines.check_end()
        runs = RerankingRuns(options, translator)
        texts, features = _nbest(
            options, translator, runs, sources, given, warnings
        )
        tuned = _tune(features, texts, references, scoring)
        name = _NAMES[options.metric]
        console.print(
            f"{name} {tuned.first_score:.2f} of the search alone, "
            f"{tuned.score:.2f} reranked"
        )
        tuning = {
            **scoring,
            "sentences": len(sources),
            "num_beams": translator.num_beams,
            **given_sha256(**given),
            "score_of_search": round(tuned.first_score, 4),
            "score": round(tuned.score, 4),
        }
        if translator.tag is not None:
            tuning["tag"] = translator.tag
        output.write(
            weights_text(tuned.weights, runs.models, translator.options, tuning)
        )


def _scoring(options, references, say):
    """The metric and its settings; refuses a tokenizer that is unknown."""
    from keras_deepnmt.evaluation.scores import make_metrics
    from keras_deepnmt.evaluation.word_tokenizers import (
        default_tokenizer,
        describe_choice,
    )

    recipe = scoring_of(options.runs[0])
    given = {"tokenize": options.tokenize, "lowercase": options.lowercase}
    settings = {
        name: getattr(recipe, name) if value is None else value
        for name, value in given.items()
    }
    if settings["tokenize"] is None:
        settings["tokenize"] = default_tokenizer(references)
        choice = describe_choice(settings["tokenize"], references)
        if choice is not None:
            say(f"{options.target}: {choice} Another --tokenize changes it.")
    # Before the translation, which may take long.
    make_metrics([options.metric], settings["tokenize"])
    return {"metric": options.metric, **settings}


def _nbest(options, translator, runs, sources, given, warnings):
    """The translations of each source, and the scores of each of them."""
    translator.on_truncated = lambda places: [
        warnings.add(place + 1, source_cut(translator.max_source_length))
        for place in places
    ]
    translator = LazilyCompiled(translator, options.compile).choose(sources)
    with progress_bar("sentences", len(sources), options.quiet) as advance:
        nbest = translator.translate_nbest(
            sources, translator.num_beams, advance, **given
        )
    reranker = runs.reranker(
        translator,
        sources,
        lambda place, fault: warnings.add(place + 1, fault),
    )
    total = len(sources) * (len(runs.models) - 1)
    with progress_bar("scored", total, options.quiet) as advance:
        features = reranker.features(sources, nbest, advance)
    return _choices(nbest, features)


def _choices(nbest, features):
    """The texts that `rerank` puts first by some weights, and their scores.

    They are those with all required phrases, if a sentence has any. The others
    are taken out only here: a model scores all translations of a sentence or
    none.
    """
    texts, scores = [], []
    for hypotheses, rows in zip(nbest, features, strict=True):
        every = list(range(len(hypotheses)))
        kept = [n for n in every if hypotheses[n].constraints_met] or every
        texts.append([hypotheses[n].text for n in kept])
        scores.append(rows[kept])
    return texts, scores


def _tune(features, texts, references, scoring):
    from keras_deepnmt.reranking import tune_weights

    return tune_weights(features, texts, references, **scoring)
