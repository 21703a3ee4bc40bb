"""The verbs of the command line, one per file; nothing heavy at import."""

VERBS = {
    "quickstart": "Train, score and export a translator on a small corpus.",
    "prepare": "Turn aligned text files into a folder ready for training.",
    "train": "Train a model from a recipe; a second run continues.",
    "translate": "Translate standard input, line by line.",
    "score": "Give the log-probabilities of given translations.",
    "evaluate": "Translate a test set and give BLEU, chrF and TER.",
    "average": "Average the last checkpoints of a run.",
    "export": "Write a SavedModel that TensorFlow Serving can run.",
    "verify": "Check an export against its golden sentences.",
    "doctor": "Show versions, conflicts, and that replicas train as one.",
    "models": "List the presets and recipes.",
}
