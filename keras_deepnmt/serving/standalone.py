"""Runs a SavedModel with only TensorFlow and TensorFlow-Text.

This file is run as a script, `python -P standalone.py ACTION FOLDER`: it
imports nothing of this package and blocks all imports of it. It prints one
line of JSON. Actions: `verify` runs the golden sentences, `translate` the JSON
list of sentences on standard input.
"""

import json
import os
import sys

BLOCKED_PACKAGES = ("keras_deepnmt", "keras_nlp", "keras_hub")
# Sums of some hundred float32 terms differ by a relative 1e-6 from one machine
# to another.
TOLERANCE = 1e-5


def main(action, folder):
    """Runs one action on a version folder and prints its result."""
    for name in BLOCKED_PACKAGES:
        # Importing it now raises an error.
        sys.modules[name] = None
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    # A GPU would only add start-up time.
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  registers Sentencepiece*

    signatures = tf.saved_model.load(folder).signatures

    def call(signature, **inputs):
        tensors = {
            name: tf.constant(value, tf.string)
            if isinstance(value, list)
            else tf.constant(value)
            for name, value in inputs.items()
        }
        outputs = signatures[signature](**tensors)
        return {name: value.numpy() for name, value in outputs.items()}

    if action == "verify":
        report = verify_golden(call, folder)
    else:
        report = _translate(call, json.load(sys.stdin))
    print(json.dumps(report))


def _translate(call, texts):
    translations = call("serving_default", text=texts)["text"]
    return {"texts": [text.decode() for text in translations]}


def verify_golden(call, folder):
    """Runs the golden sentences of a version folder by a function.

    `call` takes the name and the inputs of a signature, and returns arrays.
    """
    extra = os.path.join(folder, "assets.extra")
    with open(os.path.join(extra, "export.json"), encoding="utf-8") as file:
        length_penalty = json.load(file)["length_penalty"]
    with open(os.path.join(extra, "golden.jsonl"), encoding="utf-8") as file:
        golden = [json.loads(line) for line in file]
    records = _run(call, golden, length_penalty)
    differences, largest = [], 0.0
    for number, (expected, received) in enumerate(
        zip(golden, records, strict=True), start=1
    ):
        for name, value in received.items():
            distance = _difference(expected[name], value)
            if distance > TOLERANCE:
                differences.append(
                    {
                        "line": number,
                        "source": expected["source"],
                        "name": name,
                        "expected": expected[name],
                        "received": value,
                    }
                )
            else:
                largest = max(largest, distance)
    return {
        "sentences": len(golden),
        "differences": differences,
        "largest_difference": largest,
    }


def _run(call, golden, length_penalty):
    sources = [record["source"] for record in golden]
    best = call("serving_default", text=sources)
    nbest = call(
        "translate_nbest",
        text=sources,
        num_hypotheses=len(golden[0]["nbest_text"]),
        length_penalty=length_penalty,
    )
    targets = [record["target"] for record in golden]
    scored = call("score", source=sources, target=targets)
    given = _run_given(call, golden, length_penalty)
    return [
        {
            "text": best["text"][row].decode(),
            "score": float(best["score"][row]),
            "nbest_text": [text.decode() for text in nbest["text"][row]],
            "nbest_score": nbest["score"][row].tolist(),
            "target_log_prob": float(scored["log_prob"][row]),
            **given[row],
        }
        for row in range(len(golden))
    ]


def _run_given(call, golden, length_penalty):
    if "given_text" not in golden[0]:
        return [{}] * len(golden)  # an export of an earlier version
    found = call(
        "translate_given",
        text=[record["source"] for record in golden],
        prefix=[record["given_prefix"] for record in golden],
        constraints=[[record["given_phrase"]] for record in golden],
        max_length=tuple(0 for _ in golden),
        num_hypotheses=1,
        length_penalty=length_penalty,
    )
    return [
        {
            "given_text": found["text"][row, 0].decode(),
            "given_score": float(found["score"][row, 0]),
            "given_is_met": bool(found["constraints_met"][row, 0]),
        }
        for row in range(len(golden))
    ]


def _difference(expected, received):
    """Distance of two values: absolute, but relative to values above 1."""
    if isinstance(received, list):
        if len(expected) != len(received):
            return float("inf")
        pairs = zip(expected, received, strict=True)
        return max((_difference(*pair) for pair in pairs), default=0.0)
    if expected == received:
        return 0.0
    if isinstance(received, str) or isinstance(expected, str):
        return float("inf")
    distance = abs(expected - received) / max(1.0, abs(expected))
    # NaN must not pass as a small distance.
    return distance if distance < float("inf") else float("inf")


if __name__ == "__main__":
    main(*sys.argv[1:])
