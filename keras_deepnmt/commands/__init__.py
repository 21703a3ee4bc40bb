"""The command line: one module per command, named after it.

`VERBS` maps each command to its summary. Importing this package loads no other
module.
"""

VERBS = {
    "quickstart": "Train, evaluate and export a translator on a demo corpus.",
    "prepare": "Filter and tokenize parallel text files for training.",
    "recipe": "Print a recipe to start from, or one with all its values.",
    "train": "Train a model from a recipe, or continue an interrupted run.",
    "sweep": "Train a recipe with several seeds and values, and compare them.",
    "translate": "Translate standard input to standard output, line by line.",
    "translate-files": "Translate many files on several cores or machines.",
    "tune": "Tune the weights of reranking on a validation text.",
    "score": "Compute the log-probabilities of existing translations.",
    "evaluate": "Compute BLEU, chrF and TER of runs or translations.",
    "analyze": "Draw what the layers of a run's model have learned.",
    "report": "Write an HTML page about one or several runs.",
    "average": "Average the weights of the last checkpoints of a run.",
    "export": "Export a run as a SavedModel for TensorFlow Serving.",
    "import": "Write a model of another toolkit as a preset folder.",
    "serve": "Answer requests for translations over HTTP.",
    "verify": "Check that an exported model still gives the recorded output.",
    "doctor": "Check the installation and training with several replicas.",
    "models": "List the model presets or the bundled recipes.",
}


def module_name(verb: str) -> str:
    """Returns the name of the module of a command."""
    return f"keras_deepnmt.commands.{verb.replace('-', '_')}"
