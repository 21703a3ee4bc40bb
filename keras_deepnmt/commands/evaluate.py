"""`deepnmt evaluate`: scores runs or translations, and compares them."""

import contextlib
from typing import TYPE_CHECKING

from jsonargparse import Namespace

from keras_deepnmt.commands.options.compilation import (
    add_compile,
    start_backend,
)
from keras_deepnmt.commands.options.decoding import (
    add_checkpoint,
    add_decoding_options,
    add_tag,
    add_target_language,
    check_tag_source,
    given_decoding_options,
    load_run,
    option_name,
)
from keras_deepnmt.commands.options.given_lines import (
    GivenLines,
    add_given_lines,
)
from keras_deepnmt.commands.options.output_file import is_device, open_output
from keras_deepnmt.commands.options.own_code import add_import
from keras_deepnmt.commands.options.parser import VerbParser
from keras_deepnmt.commands.options.scoring import (
    add_resamples,
    add_scoring,
    add_split,
    check_split,
)
from keras_deepnmt.commands.terminal import score_tables
from keras_deepnmt.commands.terminal.console import Console, progress_bar
from keras_deepnmt.commands.terminal.line_warnings import LineWarnings
from keras_deepnmt.commands.terminal.quiet_import import import_backend
from keras_deepnmt.errors import UserError, UserErrors
from keras_deepnmt.files import as_line, writable_file
from keras_deepnmt.terminal_text import table_text

if TYPE_CHECKING:
    from keras_deepnmt.runs.test_translations import TestTranslations

EXAMPLE = """
deepnmt evaluate runs/demo
deepnmt evaluate runs/demo --source test.en --target test.de --tokenize none
deepnmt evaluate runs/plain runs/hybrid --details --differences changed.tsv
deepnmt evaluate runs/plain-1 runs/plain-2 runs/hybrid-1 runs/hybrid-2
deepnmt evaluate --hypotheses a.de b.de --references test.de --ladder
deepnmt evaluate --hypotheses a.txt --references r0.txt r1.txt --rouge
deepnmt evaluate runs/summaries --source test.src --references r0 r1 --rouge
deepnmt evaluate runs/corrections --m2 test.m2
deepnmt evaluate --hypotheses a.txt --source test.src --references r0 r1 \\
    --metrics gleu --errant
deepnmt evaluate runs/mine --metrics bleu WordRecall --import my_metrics.py
deepnmt evaluate runs/mine --metrics bleu comet --comet-model wmt22-comet-da \\
    --comet-python comet/bin/python
"""
_SPACY_MODEL = "en_core_web_sm"
CONTINUE = "No score was written; run the same command again."
# The options for arguments of other names.
_ARGUMENTS = {
    "tag": "--tag",
    "target_language": "--target-language",
    "source_file": "--source",
    "target_file": "--target",
}
# Options that have no effect with --m2, with their defaults.
_NOT_WITH_M2 = {
    **dict.fromkeys(("references", "source", "target", "prepared")),
    **dict.fromkeys(("tokenize", "lowercase", "metrics", "language")),
    **dict.fromkeys(("comet_model", "comet_qe_model", "comet_python")),
    **dict.fromkeys(("rouge", "ladder"), False),
    **dict.fromkeys(("prefixes", "constraints", "max_lengths")),
    **{"differences": None, "split": "test", "resamples": 1_000},
}
# Options that have no effect with --hypotheses, besides those of decoding.
_NOT_WITH_HYPOTHESES = {
    **dict.fromkeys(("target", "prepared", "checkpoint", "compile")),
    **dict.fromkeys(("prefixes", "constraints", "max_lengths")),
    "split": "test",
}


def add_options(parser: VerbParser) -> None:
    """Adds the options of `deepnmt evaluate`."""
    parser.add_argument(
        "runs",
        metavar="RUN",
        nargs="*",
        help="Run folders written by `deepnmt train`. Other recipes are "
        "compared with that of the first one, and runs of one recipe with "
        "different seeds summed up. Leave them out with --hypotheses.",
    )
    _add_text_options(parser)
    _add_scoring_options(parser)
    _add_tables(parser)
    parser.add_argument(
        "--output",
        "-o",
        metavar="FILE",
        help="File to write the translations of one run to, or with --m2 its "
        "corrections. Default: none is written.",
    )
    add_decoding_options(parser)
    add_given_lines(parser)
    add_checkpoint(parser)
    add_compile(parser, lazily=False)
    add_import(parser)


def _add_text_options(parser):
    for side in ("source", "target"):
        parser.add_argument(
            f"--{side}",
            metavar="FILE",
            help=f"Text file with {side} sentences, one per line. Both sides "
            "are needed to translate; they replace the runs' own data. "
            "--references may stand for --target.",
        )
    add_tag(parser)
    add_target_language(parser)
    add_split(parser)
    parser.add_argument(
        "--hypotheses",
        nargs="+",
        metavar="FILE",
        help="Text files with translations, one per line, instead of runs. "
        "Those after the first one are compared with it.",
    )
    parser.add_argument(
        "--references",
        nargs="+",
        metavar="FILE",
        help="Text files with references, for --hypotheses or for --source: "
        "one, or one for each set of references. An empty line is no "
        "reference.",
    )


def _add_scoring_options(parser):
    add_scoring(
        parser,
        "; with --hypotheses that of --language or of the references' script, "
        "and 13a where words have spaces between them",
    )
    parser.add_argument(
        "--metrics",
        nargs="+",
        metavar="NAME",
        help="Scores to compute: any of bleu, chrf, ter, gleu, comet, "
        "comet-qe and your own metrics in files of --import, such as "
        "WordRecall. gleu is for corrections of tokenized text. "
        "Default: as in the run's recipe, or the first three.",
    )
    for metric, kind in (("comet", ""), ("comet-qe", "reference-free ")):
        parser.add_argument(
            f"--{metric}-model",
            metavar="DIR",
            help=f"Folder of a {kind}COMET model, with hparams.yaml and "
            f"checkpoints/model.ckpt, or such a .ckpt file, for {metric}.",
        )
    parser.add_argument(
        "--comet-python",
        metavar="FILE",
        help="Python of the environment that has unbabel-comet, which cannot "
        "be installed beside TensorFlow. Default: the one that runs.",
    )
    add_resamples(parser)


def _add_tables(parser):
    parser.add_argument(
        "--rouge",
        action="store_true",
        help="Also print ROUGE-1, ROUGE-2 and ROUGE-L, for summaries.",
    )
    parser.add_argument(
        "--m2",
        metavar="FILE",
        help="File with sentences and gold edits in M² format: print only "
        "precision, recall and F0.5 of corrections (MaxMatch). Runs correct "
        "the sentences of the file; --hypotheses are corrections of them.",
    )
    parser.add_argument(
        "--errant",
        action="store_true",
        help="Also print precision, recall and F0.5 of English corrections, of "
        "all edits and by type of error (ERRANT), with the gold edits of --m2 "
        "or those of the references.",
    )
    parser.add_argument(
        "--spacy-model",
        default=_SPACY_MODEL,
        metavar="NAME",
        help="Name or folder of an English model of spaCy, for --errant.",
    )
    parser.add_argument(
        "--details",
        action="store_true",
        help="Also print BLEU by source length and by the rarest word, and "
        "rates of repetitions and copies. Without --source, only what needs "
        "no source. With --m2, recall by the type of the gold edits.",
    )
    parser.add_argument(
        "--ladder",
        action="store_true",
        help="Also print BLEU under all definitions that papers use: other "
        "tokenizers, lower case, compounds split.",
    )
    parser.add_argument(
        "--language",
        metavar="CODE",
        help="Code of the target language, for --ladder and, with "
        "--hypotheses, for --tokenize. Default: that of --target-language, or "
        "as in the run's recipe; for --ladder otherwise en.",
    )
    parser.add_argument(
        "--differences",
        metavar="FILE",
        help="File for all sentences with their translations and sentence "
        "BLEU, tab-separated, those that differ most from the first system "
        "first.",
    )


def run(options: Namespace) -> None:
    """Prints scores and comparisons; adds scores to the runs' `scores.json`."""
    _check(options)
    if options.m2 is not None:
        _score_corrections(options)
        return
    if options.hypotheses:
        import_backend()
        from keras_deepnmt.own_code.loading import use_code
        from keras_deepnmt.runs.test_translations import (
            read_translations,
        )

        use_code([])  # metrics of --import
        text = read_translations(
            options.hypotheses,
            options.references,
            options.source,
            _given_scoring(options),
            options.resamples,
            options.language,
            Console(options.quiet).print,
            _comet_models(options),
            _needs_bleu(options),
        )
    else:
        text = _translate(options)
    from keras_deepnmt.runs.comparisons import paired_tests

    tests = []
    if len(text.systems) > 1:
        tests = paired_tests(text, options.resamples)
    _print(text, tests, options)
    _say_what_tests_cover(text, tests, Console(options.quiet))
    if text.unrecorded:
        raise UserErrors(
            f"{name}: the scores above were not recorded in scores.json: "
            f"{reason}"
            for name, reason in text.unrecorded.items()
        )


def _check(options):
    if bool(options.runs) == bool(options.hypotheses):
        raise UserError("needs either run folders or --hypotheses.")
    if options.m2 is not None:
        for name in _given_among(_NOT_WITH_M2, options):
            raise UserError(
                f"{option_name(name)} cannot be given with --m2, which prints "
                "only precision, recall and F0.5 of corrections of its file's "
                "sentences."
            )
    elif options.hypotheses and not options.references:
        raise UserError("--hypotheses needs --references.")
    elif options.references and not (options.hypotheses or options.source):
        raise UserError("--references needs --hypotheses or --source.")
    elif options.references and options.target:
        raise UserError("--target and --references cannot be given together.")
    if options.runs:
        # With --m2 the sentences of its file have the tag.
        check_tag_source(options.tag, options.m2 or options.source)
        check_split(options.split, options.source)
    _check_language(options)
    _check_comet(options)
    needs_source = {
        "--metrics gleu": "gleu" in (options.metrics or ()),
        "--errant": options.errant and options.m2 is None,
    }
    for name, given in needs_source.items():
        if given and options.hypotheses and not options.source:
            raise UserError(
                f"{name} needs --source, the sentences that were corrected."
            )
    if options.hypotheses:
        _refuse_options_of_translating(options)
    names = options.runs or options.hypotheses
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise UserError(f"{', '.join(repeated)}: given more than once.")
    one_reference = {
        "--details": options.details,
        "--ladder": options.ladder,
        "--differences": options.differences,
    }
    for name, given in one_reference.items():
        if given and options.references and len(options.references) > 1:
            raise UserError(f"{name} needs a single file of --references.")
    if options.output is not None and len(options.runs) != 1:
        raise UserError("--output needs exactly one run.")
    if options.differences is not None and len(names) < 2:
        raise UserError("--differences needs at least two systems.")
    if options.differences not in (None, "-") and not is_device(
        options.differences
    ):
        writable_file(options.differences)
    if options.spacy_model != _SPACY_MODEL and not options.errant:
        raise UserError("--spacy-model needs --errant.")
    if options.errant:
        # Reported before the translation, which may take long.
        import_backend()
        from keras_deepnmt.evaluation.errant_scores import load_annotator

        load_annotator(options.spacy_model)
    if options.rouge:
        # Reported before the translation, too.
        import rouge_score.rouge_scorer  # noqa: F401


def _check_language(options):
    """Refuses a language that has no effect."""
    if options.language is None or options.ladder:
        return
    if options.runs:
        raise UserError(
            "--language needs --ladder or --hypotheses: a run's recipe says "
            "how it is scored. Give --tokenize for another tokenizer."
        )
    if options.tokenize is not None:
        raise UserError(
            "--language cannot be given with --tokenize, which it chooses "
            "otherwise. Leave one of them out, or give --ladder."
        )


def _check_comet(options):
    """Refuses a metric of COMET without what it needs, and the reverse."""
    models = _named_models(options)
    for metric, model in models.items():
        asked = metric in (options.metrics or ())
        if asked and model is None:
            raise UserError(f"--metrics {metric} needs --{metric}-model.")
        if model is not None and not asked:
            raise UserError(f"--{metric}-model needs --metrics {metric}.")
        if asked and options.hypotheses and not options.source:
            raise UserError(
                f"--metrics {metric} needs --source, the sentences that were "
                "translated."
            )
    if options.comet_python is not None and not any(models.values()):
        raise UserError("--comet-python needs --metrics comet or comet-qe.")


def _named_models(options):
    return {
        "comet": options.comet_model,
        "comet-qe": options.comet_qe_model,
    }


def _comet_models(options):
    """Opens the models of COMET that are named, by their metrics."""
    from keras_deepnmt.evaluation import CometModel

    return {
        metric: CometModel(model, metric, options.comet_python)
        for metric, model in _named_models(options).items()
        if model is not None
    }


def _refuse_options_of_translating(options):
    others = _given_among(_NOT_WITH_HYPOTHESES, options)
    for name in [*given_decoding_options(options), *others]:
        raise UserError(
            f"{option_name(name)} cannot be given with --hypotheses, which are "
            "translations already."
        )


def _given_among(defaults, options):
    """Lists the names of those options that do not have their default."""
    return [name for name in defaults if options[name] != defaults[name]]


def _given_scoring(options):
    given = {
        "tokenize": options.tokenize,
        "lowercase": options.lowercase,
        "metrics": options.metrics and tuple(options.metrics),
    }
    return {name: value for name, value in given.items() if value is not None}


def _needs_bleu(options):
    """Whether a table has BLEU, even if it is not among the metrics."""
    return options.details or options.differences is not None


def _score_corrections(options):
    given = given_decoding_options(options)
    if options.runs:
        start_backend()
    else:
        import_backend()
    from keras_deepnmt.evaluation import read_m2
    from keras_deepnmt.runs.checkpoints import open_run
    from keras_deepnmt.runs.test_translations import read_corrections

    gold = read_m2(options.m2)
    if options.hypotheses:
        systems = read_corrections(options.hypotheses, gold, options.m2)
    else:
        sources = [" ".join(sentence.words) for sentence in gold]
        given["compiled"] = options.compile is not False
        systems = {}
        for run_dir in options.runs:
            open_run(run_dir, options.checkpoint)  # refused before the first
        with (
            _writing(options.output) as write,
            progress_bar("sentences", quiet=options.quiet) as advance,
        ):
            for run_dir in options.runs:
                translator = load_run(run_dir, options.checkpoint, given)
                systems[run_dir] = translator.translate(
                    sources, on_progress=advance
                )
                write(systems[run_dir])
    tables = score_tables.corrections(systems, gold, options.details)
    if options.errant:
        tables.append(score_tables.errant(systems, gold, options.spacy_model))
    print(table_text(tables))


@contextlib.contextmanager
def _writing(path):
    """Yields a function that writes the lines of one run to `--output`.

    When it returns the file is whole, whatever fails afterwards. What cannot be
    written is refused at the beginning.
    """
    if path is None:
        yield lambda lines: None
        return
    with contextlib.ExitStack() as opened:
        output = opened.enter_context(open_output(path))

        def write(lines):
            output.writelines(f"{as_line(line)}\n" for line in lines)
            opened.close()

        yield write


def _translate(options) -> "TestTranslations":
    given = given_decoding_options(options)
    lines = GivenLines(options)
    asked = lines.read()
    start_backend()
    from keras_deepnmt.runs.test_translations import translate_runs

    target_file, *more = options.references or [options.target]

    def warn(places):
        for place in places:
            warnings.add(
                place + 1,
                "the source is longer than the model's position range; the "
                "rest was not translated.",
            )

    with (
        _writing(options.output) as write,
        LineWarnings() as warnings,
        progress_bar("sentences", quiet=options.quiet) as advance,
        _options_named(),
    ):
        return translate_runs(
            options.runs,
            source_file=options.source,
            target_file=target_file,
            more_reference_files=more,
            split=options.split,
            prepared_dir=options.prepared,
            **given,
            **_given_scoring(options),
            comet_models=_comet_models(options),
            needs_bleu=_needs_bleu(options),
            checkpoint=options.checkpoint,
            on_translated=write,
            num_resamples=options.resamples,
            compiled=options.compile is not False,
            **asked,
            on_loaded=lines.check,
            on_truncated=warn,
            on_progress=advance,
        )


@contextlib.contextmanager
def _options_named():
    """Puts the names of options in the place of those of arguments."""
    try:
        yield
    except UserErrors:
        raise
    except UserError as error:
        message = str(error)
        for argument, option in _ARGUMENTS.items():
            message = message.replace(f"`{argument}`", f"`{option}`")
        raise UserError(message) from error


def _print(text: "TestTranslations", tests, options: Namespace) -> None:
    from keras_deepnmt.runs.comparisons import has_seeds

    tables = [score_tables.scores(text, options.resamples)]
    if len(text.systems) > 1:
        if has_seeds(text.recipes):
            tables += score_tables.seeds(text)
        tables += score_tables.comparisons(tests)
    if options.rouge:
        tables.append(score_tables.rouge(text))
    if options.errant:
        gold = score_tables.reference_edits(text, options.spacy_model)
        tables.append(
            score_tables.errant(text.systems, gold, options.spacy_model)
        )
    if options.details:
        tables += score_tables.details(text)
    if options.ladder:
        tables += score_tables.ladder(text, options.language)
    print(table_text(tables))
    if options.differences is not None:
        with open_output(options.differences) as file:
            for row in score_tables.differences(text):
                file.write("\t".join(row) + "\n")


def _say_what_tests_cover(text, tests, console):
    """Says what differences between systems do not tell."""
    from keras_deepnmt.runs.comparisons import (
        MORE_SEEDS,
        NOT_COVERED,
        describe_disagreements,
        has_seeds,
    )

    if len(text.systems) < 2:
        return
    for group in text.recipes:
        if len(group.runs) > 1:
            console.print(
                f"{', '.join(group.runs.values())}: one recipe with different "
                "seeds, so no test compares them."
            )
        for run in group.repeated:
            console.print(
                f"{run}: has the recipe and the seed of another run, and does "
                "not count in means over seeds."
            )
    if tests:
        more = "" if has_seeds(text.recipes) else f" {MORE_SEEDS}"
        console.print(NOT_COVERED + (more if text.recipes else ""))
    disagreements = describe_disagreements(tests)
    if disagreements is not None:
        console.print(disagreements)
