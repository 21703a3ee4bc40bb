"""Writes the final model of a run and its scores on the validation set."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from keras_deepnmt.data.tags import tags_of_corpora
from keras_deepnmt.evaluation.scores import corpus_scores
from keras_deepnmt.runs import provenance
from keras_deepnmt.runs.checkpoints import final_model
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.runs.start import ResolvedRun
from keras_deepnmt.translator import Translator
from keras_deepnmt.xla.events import listen
from keras_deepnmt.zoo.registry import PRESET_VERSION


def finish(
    run: ResolvedRun,
    step: int,
    stopped: str | None,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Builds the final model, scores it, and writes the model and `run.json`.

    `step` is the number of updates made, and `stopped` why there are no more;
    `say` prints for which shapes the search is compiled. Returns the content
    of `run.json`.
    """
    recipe, data, folder = run.recipe, run.data, run.folder
    manifest = data.manifest
    model, steps = final_model(recipe, folder, manifest)
    listen(model, lambda compilation: say(compilation.describe()))
    summary = {
        "name": recipe.name,
        "preset": recipe.model.preset,
        "overrides": recipe.model.overrides,
        "preset_version": PRESET_VERSION,
        "source_vocabulary_size": manifest["source_vocabulary_size"],
        "target_vocabulary_size": manifest["target_vocabulary_size"],
        "tokenizer": dict(manifest["tokenizer"]),
        "weights_sha256": None,
        "steps": step,
        "stopped_early": stopped,
        "tags": tags_of_corpora(c.tag for c in recipe.data.train),
        "tag_side": recipe.data.tag_side,
        "directions": recipe.data.directions(),
        "context": recipe.data.context,
        "code": folder.recipe().resolved.get("code", []),
        "initialize_from": recipe.resolved.get("initialize_from"),
        "final_model": recipe.training.final_model,
        "averaged_steps": steps,
        "best": _best(folder),
        "decoding": asdict(recipe.decoding),
        "evaluation": {
            **asdict(recipe.evaluation),
            "metrics": list(recipe.evaluation.metrics),
        },
        "seed": recipe.seed,
        "parameters": model.count_params(),
        "training": folder.describe_speed(),
        "valid": _valid_scores(recipe, data, model),
        "device": provenance.device(),
        "versions": provenance.versions(),
        "commit": provenance.commit(),
    }
    # All at once, since an earlier model of this run is used until then.
    folder.write_result(model, summary, data.directory)
    return summary


def describe_end(
    folder: RunFolder, summary: Mapping[str, Any], steps: int
) -> str:
    """Tells in a line that a run is finished and, if it stopped early, why."""
    line = f"{folder.directory}: this run is finished."
    if stopped := summary.get("stopped_early"):
        line += f" It stopped at update {summary['steps']:,} of {steps:,}: "
        line += f"{stopped}"
    return line


def _best(folder):
    """Update, metric and value of the best validation, if there was one."""
    best = folder.checkpoints().best()
    if best is None:
        return None
    return {"step": best.step, "metric": best.metric, "value": best.value}


def _valid_scores(recipe, data, model):
    if "valid" not in data.splits:
        return {}
    sources, references = data.texts("valid")
    translator = Translator(
        model,
        data.source_tokenizer,
        data.target_tokenizer,
        tag_side=recipe.data.tag_side,
        # A validation text needs no tag.
        training_tags=[*recipe.data.tags(), None],
        options=recipe.decoding.search_options(),
        batch_size=recipe.decoding.batch_size,
        batch_tokens=recipe.decoding.batch_tokens,
        compiled=recipe.training.jit_compile,
    )
    scores = corpus_scores(
        translator.translate(sources),
        references,
        metrics=("bleu",),
        tokenize=recipe.evaluation.tokenize,
        lowercase=recipe.evaluation.lowercase,
    )
    return {
        name: {"value": score.value, "signature": score.signature}
        for name, score in scores.items()
    }
