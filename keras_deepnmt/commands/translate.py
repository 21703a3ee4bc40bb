"""`deepnmt translate`: translates standard input to standard output."""

import sys

from jsonargparse import Namespace
from jsonargparse.typing import PositiveInt

from keras_deepnmt.commands.options.decoding import (
    add_decoding_options,
    load_translator,
)
from keras_deepnmt.commands.options.parser import VerbParser, add_run_folder
from keras_deepnmt.commands.terminal.console import progress_bar
from keras_deepnmt.commands.terminal.input_lines import stream_lines
from keras_deepnmt.errors import UserError

EXAMPLE = """
deepnmt translate runs/demo < test.en > test.de
echo "Ein Hund schläft." | deepnmt translate runs/demo --num-hypotheses 3
"""
CONTINUE = "The lines printed so far are complete."

# Sentences of similar length are batched together: a larger group means less
# padding, but a later first translation.
_BATCHES_PER_GROUP = 16


def add_options(parser: VerbParser) -> None:
    """Adds the options of `deepnmt translate`."""
    add_run_folder(parser)
    add_decoding_options(parser)
    parser.add_argument(
        "--num-hypotheses",
        type=PositiveInt,
        default=1,
        metavar="N",
        help="Number of translations to print per sentence. If N is 2 or more, "
        "each is a line `number ||| text ||| score`, where number is the line "
        "number of the sentence, from 1.",
    )


def run(options: Namespace) -> None:
    """Translates standard input until it ends."""
    if options.num_hypotheses > (options.num_beams or options.num_hypotheses):
        raise UserError(
            "`--num-hypotheses` must not exceed `--num-beams`. Received: "
            f"{options.num_hypotheses} and {options.num_beams}"
        )
    translator = load_translator(options)
    num_hypotheses = options.num_hypotheses
    number = 0
    size = translator.batch_size * _BATCHES_PER_GROUP
    with progress_bar("sentences", quiet=options.quiet) as advance:
        for lines in stream_lines(sys.stdin.fileno(), size):
            if num_hypotheses == 1:
                outputs = translator.translate(lines, advance)
            else:
                nbest = translator.translate_nbest(
                    lines, num_hypotheses, advance
                )
                outputs = _numbered(nbest, number + 1)
            number += len(lines)
            sys.stdout.writelines(f"{output}\n" for output in outputs)
            sys.stdout.flush()


def _numbered(nbest, first):
    for number, hypotheses in enumerate(nbest, start=first):
        for hypothesis in hypotheses:
            score = f"{hypothesis.score:.6f}"
            yield f"{number} ||| {hypothesis.text} ||| {score}"
