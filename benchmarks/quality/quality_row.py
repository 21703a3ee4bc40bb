"""Adds the test scores of a run to the table of translation quality.

    python benchmarks/quality/quality_row.py RUN

All values are read from the run folder: the newest row of `scores.json`, and
`run.json`. Nothing is measured here. The row is appended to
`results/quality.csv`.
"""

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import append_row


def quality_row(run_dir):
    """Returns the row of a run folder.

    `deepnmt train` and `deepnmt evaluate` must have written to the folder.
    """
    run = json.loads((Path(run_dir) / "run.json").read_text("utf-8"))
    scores = json.loads((Path(run_dir) / "scores.json").read_text("utf-8"))
    row = scores["evaluations"][-1]
    training = run["training"]
    return {
        "date": row["date"][:10],
        "commit": run["commit"],
        "device": run["device"],
        "tensorflow": run["versions"]["tensorflow"],
        "keras": run["versions"]["keras"],
        "recipe": run["name"],
        "parameters": run["parameters"],
        "seed": run["seed"],
        "updates": run["steps"],
        "averaged_checkpoints": len(run["averaged_steps"]),
        "training_minutes": round(training["seconds"] / 60, 1),
        "target_tokens": training["target_tokens"],
        "target_tokens_per_second": training["target_tokens_per_second"],
        "test_set": row["test_set"]["name"],
        "sentences": row["test_set"]["sentences"],
        "num_beams": row["decoding"]["num_beams"],
        "length_penalty": row["decoding"]["length_penalty"],
        "length_offset": row["decoding"].get("length_offset", 5.0),
        "bleu": round(row["scores"]["bleu"]["value"], 2),
        "bleu_signature": row["scores"]["bleu"]["signature"],
        "chrf": round(row["scores"]["chrf"]["value"], 2),
        "chrf_signature": row["scores"]["chrf"]["signature"],
        "ter": round(row["scores"]["ter"]["value"], 2),
        "ter_signature": row["scores"]["ter"]["signature"],
    }


def main():
    """Appends the row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", help="run folder with scores.json and run.json")
    row = quality_row(parser.parse_args().run)
    append_row(Path(__file__).parent / "results" / "quality.csv", row)
    print(json.dumps(row, indent=2))


if __name__ == "__main__":
    main()
