"""`deepnmt quickstart`: an end-to-end example, from text to a SavedModel."""

from pathlib import Path
from typing import Literal

from jsonargparse import Namespace

from keras_deepnmt.commands.options.parser import VerbParser
from keras_deepnmt.commands.terminal.console import Console
from keras_deepnmt.commands.terminal.quiet_import import import_backend
from keras_deepnmt.trained import USUAL_MODEL

EXAMPLE = """
deepnmt quickstart
deepnmt quickstart --scale smoke --output /tmp/quickstart
"""
CONTINUE = "Run the same command again to continue."

RECIPE = "transformer_tiny.demo_de_en"
LINE = "Wann fährt der nächste Zug nach Berlin?"

NUM_PAIRS = {
    "full": {"num_train": 40_000, "num_test": 500},
    "smoke": {"num_train": 1_000, "num_test": 50},
}

_SMALLER = {
    "full": {},
    "smoke": {
        "model.overrides.hidden_dim": 32,
        "model.overrides.intermediate_dim": 64,
        "model.overrides.num_encoder_layers": 1,
        "model.overrides.num_decoder_layers": 1,
        "data.vocabulary_size": 600,
        "training.steps": 40,
        "training.batch_tokens": 1_000,
        "training.max_shapes": 2,
        "training.learning_rate.warmup_steps": 20,
        "training.validate_every": 40,
        "training.checkpoint_every": 20,
        "training.average_checkpoints": 2,
    },
}

_NUM_EXAMPLES = 5
_LONGEST_EXAMPLE = 14


def add_options(parser: VerbParser) -> None:
    """Adds the options of `deepnmt quickstart`."""
    parser.add_argument(
        "--scale",
        type=Literal["full", "smoke"],
        default="full",
        help="full: a few minutes, good translations; smoke: the same steps in "
        "about a minute, poor translations.",
    )
    parser.add_argument(
        "--output",
        "-o",
        metavar="DIR",
        help="Folder for all files. Default: quickstart, or "
        "quickstart-smoke with --scale smoke.",
    )


def run(options: Namespace) -> None:
    """Prepares a corpus, then trains, evaluates and exports a model."""
    names = {"full": "quickstart", "smoke": "quickstart-smoke"}
    folder = Path(options.output or names[options.scale])
    console = Console(options.quiet)
    corpus = folder / "corpus"
    console.print_stage(f"Writing a German-English corpus to {corpus}")
    from keras_deepnmt.data.demo import write_demo_corpus

    write_demo_corpus(corpus, **NUM_PAIRS[options.scale])
    console.print_stage("Preparing: filtering, training a tokenizer, encoding")
    from keras_deepnmt.data.preparation.prepare_corpus import prepare_corpus
    from keras_deepnmt.recipes.loading import load_recipe

    recipe = load_recipe(RECIPE, recipe_overrides(corpus, options.scale))
    prepare_corpus(recipe.data, folder / "prepared", progress=not options.quiet)
    console.print_stage(
        "Training (the first updates are slow: the model is compiled)"
    )
    from keras_deepnmt.xla.cache import ask_for_user_cache

    ask_for_user_cache()
    import_backend()
    from keras_deepnmt.runs.train import train

    train(
        recipe,
        folder / "run",
        prepared_dir=folder / "prepared",
        quiet=options.quiet,
    )
    console.print_stage("Translating the test set, which training does not use")
    _score(folder)

    console.print_stage(
        "Exporting a SavedModel and running it without this package"
    )
    _serve(folder)

    console.print_stage(
        f"Translating with {USUAL_MODEL}, which comes with the package"
    )
    _translate_with_trained()

    console.print_stage("Done. Try:")
    console.print(_next_steps(folder))


def recipe_overrides(corpus: Path, scale: str) -> dict[str, object]:
    """Returns the changes to the recipe by dotted key: the files, and sizes.

    `scale` is `"full"` or `"smoke"`.
    """
    text = {
        split: {
            "source": str(corpus / f"{split}.de"),
            "target": str(corpus / f"{split}.en"),
        }
        for split in ("train", "test")
    }
    return {
        "data.train": [text["train"]],
        "data.test": text["test"],
        **_SMALLER[scale],
    }


def _score(folder):
    from keras_deepnmt.runs.evaluate import evaluate, read_pairs

    translations = folder / "test.translations.en"
    # So few sentences take less time than compilations for their lengths.
    row = evaluate(folder / "run", output_file=translations, compiled=False)
    for name, score in row["scores"].items():
        print(f"test {name} {score['value']:.2f} ({score['signature']})")
    corpus = folder / "corpus"
    sources, references = read_pairs(corpus / "test.de", corpus / "test.en")
    outputs = translations.read_text(encoding="utf-8").split("\n")
    shown = 0
    for source, output, reference in zip(
        sources, outputs, references, strict=False
    ):
        if shown < _NUM_EXAMPLES and len(source.split()) <= _LONGEST_EXAMPLE:
            shown += 1
            print(f"\n  source      {source}")
            print(f"  translation {output}")
            print(f"  reference   {reference}")


def _serve(folder):
    from keras_deepnmt.serving import export
    from keras_deepnmt.serving.golden import default_sources, read_golden
    from keras_deepnmt.translator import Translator

    served = folder / "served"
    source = (folder / "corpus" / "valid.de").read_text("utf-8").split("\n")[0]
    if not (served / "1").is_dir():
        translator = Translator.load(folder / "run")
        others = default_sources(translator.source_tokenizer)
        export(translator, served, golden_sources=[source, *others])
    # A fresh process, which cannot import this package, computed it too.
    shown = read_golden(served / "1")[0]
    print(f"\n{served}, with TensorFlow and TensorFlow-Text alone:")
    print(f"  source      {shown['source']}")
    print(f"  translation {shown['text']}")


def _translate_with_trained():
    from keras_deepnmt.translator import Translator

    # One line takes less time than a compilation for its length.
    translator = Translator.from_preset(USUAL_MODEL, compiled=False)
    print(f"  source      {LINE}")
    print(f"  translation {translator.translate(LINE)}")


def _next_steps(folder):
    run_dir, corpus = folder / "run", folder / "corpus"
    return "\n".join(
        [
            f'  echo "Der Hund schläft." | deepnmt translate {run_dir}',
            f'  echo "Guten Morgen!" | deepnmt translate {USUAL_MODEL}',
            f"  deepnmt evaluate {run_dir} --num-beams 1",
            f"  deepnmt score {run_dir} --source {corpus / 'test.de'} "
            f"--target {corpus / 'test.en'} --totals",
            f"  deepnmt verify {folder / 'served'}",
            f"  tensorboard --logdir {run_dir / 'tensorboard'}",
            f"  deepnmt train {run_dir / 'recipe.yaml'} --set seed=2 "
            f"--prepared {folder / 'prepared'} --run-dir {folder / 'run-2'}",
        ]
    )
