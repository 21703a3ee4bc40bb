"""`deepnmt translate`: standard input to standard output."""

import sys

from jsonargparse import Namespace
from jsonargparse.typing import PositiveInt

from keras_deepnmt.commands.options.decoding import (
    add_decoding_options,
    load_translator,
)
from keras_deepnmt.commands.options.parser import VerbParser, add_run
from keras_deepnmt.commands.terminal.console import counting
from keras_deepnmt.commands.terminal.input_lines import stream_lines
from keras_deepnmt.errors import UserError

EXAMPLE = """
deepnmt translate runs/demo < test.en > test.de
echo "Ein Hund schläft." | deepnmt translate runs/demo --num-hypotheses 3
"""
CONTINUE = "The lines printed so far are complete."

# Sentences of one length are computed together; more to choose from means
# less padding, and later answers.
_BATCHES_PER_GROUP = 16


def add_options(parser: VerbParser) -> None:
    """Adds this verb's options.

    Args:
        parser: the verb's parser.
    """
    add_run(parser)
    add_decoding_options(parser)
    parser.add_argument(
        "--num-hypotheses",
        type=PositiveInt,
        default=1,
        help="Above 1: that many lines `number ||| text ||| score` a sentence.",
    )


def run(options: Namespace) -> None:
    """Translates until the input ends.

    Args:
        options: what the parser returned.
    """
    if options.num_hypotheses > (options.num_beams or options.num_hypotheses):
        raise UserError(
            "`--num-hypotheses` must not exceed `--num-beams`. Received: "
            f"{options.num_hypotheses} and {options.num_beams}"
        )
    translator = load_translator(options)
    num_hypotheses = options.num_hypotheses
    number = 0
    size = translator.batch_size * _BATCHES_PER_GROUP
    with counting("sentences", quiet=options.quiet) as advance:
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
