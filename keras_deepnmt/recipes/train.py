"""From a recipe to a trained run folder."""

import hashlib
import sys
from pathlib import Path
from typing import Any

import keras

from keras_deepnmt.data.manifest import describe_manifest
from keras_deepnmt.data.prepare import prepare_corpus
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.errors import UserError
from keras_deepnmt.evaluation.scores import corpus_scores
from keras_deepnmt.recipes import provenance
from keras_deepnmt.recipes.batch_search import find_batch, with_parts
from keras_deepnmt.recipes.building import (
    average_into,
    build_model,
    compile_model,
    plan_batches,
)
from keras_deepnmt.recipes.compilation_cache import (
    cache_asked_for,
    open_cache,
)
from keras_deepnmt.recipes.fitting import Fit
from keras_deepnmt.recipes.loading import load_recipe, save_recipe
from keras_deepnmt.recipes.run_folder import RunFolder, write_json
from keras_deepnmt.recipes.schema import Recipe
from keras_deepnmt.training.strategies import make_strategy
from keras_deepnmt.translator import Translator
from keras_deepnmt.zoo.registry import get_preset


def train(
    recipe: Recipe | str | Path,
    run_dir: str | Path,
    *,
    data_dir: str | Path | None = None,
    prepared_dir: str | Path | None = None,
    resume: bool = True,
    quiet: bool = False,
) -> dict[str, Any]:
    """Prepares the data, trains, averages, and writes a run folder.

    Called again on the same folder it goes on from the last good checkpoint,
    as if it had never stopped; on a finished one it returns at once, unless
    the recipe's `training.steps` has changed: then it trains further.

    Args:
        recipe: a recipe, its name or its file.
        run_dir: the run's folder.
        data_dir: folder with copies of named corpora.
        prepared_dir: a prepared folder to use; otherwise the recipe's data are
            prepared into `run_dir/data`.
        resume: whether to go on from checkpoints; if false, a folder that has
            any is refused.
        quiet: shows nothing.

    Returns:
        What `run.json` holds: preset, vocabularies, hashes, steps, the
        validation scores of the final model.

    Raises:
        UserError: if the recipe is wrong, or belongs to another run than the
            folder's.
        KeyboardInterrupt: on Ctrl-C, after a checkpoint was saved.

    Example:
    >>> train("transformer_tiny.demo_de_en", "runs/demo")["preset"]
    'transformer_tiny'
    """
    if not isinstance(recipe, Recipe):
        recipe = load_recipe(recipe)
    _check_preset(recipe)
    with cache_asked_for(run_dir, recipe.training.jit_compile):
        return _train(
            recipe, RunFolder(run_dir), data_dir, prepared_dir, resume, quiet
        )


def _train(recipe, run, data_dir, prepared_dir, resume, quiet):
    training = recipe.training
    strategy = None
    if training.batch_tokens != "auto":
        # Before anything starts TensorFlow: its devices cannot be divided
        # later. Trials come before, since it keeps an accelerator's memory.
        strategy = make_strategy(training.strategy, training.replicas)
    run.claim(recipe, resume)
    with run.alone():
        if run.recipe_file.is_file():
            run.reopen(recipe)
        if run.run_file.is_file():
            _say(quiet, f"{run.directory}: this run is finished.")
            return run.run()
        data = _prepared(recipe, run, data_dir, prepared_dir, quiet)
        found = find_batch(recipe, run, data, lambda text: _say(quiet, text))
        _record(recipe, run, data, found)
        if strategy is None:
            strategy = make_strategy(training.strategy, training.replicas)
        if found is not None:
            recipe = with_parts(recipe, found["gradient_accumulation_steps"])
        if training.jit_compile:
            late = open_cache(run.directory, keras.config.backend())
            _say(quiet or not late, late)
        step = _fit(recipe, run, data, strategy, quiet)
        return _finish(recipe, run, data, step, quiet)


def _fit(recipe, run, data, strategy, quiet):
    keras.utils.set_random_seed(recipe.seed)
    plan = plan_batches(recipe, data, strategy.num_replicas_in_sync)
    _say(quiet, _describe(recipe, data, plan))
    with strategy.scope():
        model = build_model(recipe, data.manifest)
        compile_model(recipe, model)
        fit = Fit(recipe, run, data, model, plan, quiet)
        fit.go_on()
    return fit.step


def _check_preset(recipe):
    try:
        get_preset(recipe.model.preset)
    except ValueError as error:
        raise UserError(
            f"recipe {recipe.name}, `model.preset`: {error}"
        ) from error


def _prepared(recipe, run, data_dir, prepared_dir, quiet):
    if prepared_dir is None:
        prepare_corpus(
            recipe.data, run.data_dir, data_dir=data_dir, progress=not quiet
        )
        prepared_dir = run.data_dir
    return PreparedData(prepared_dir)


def _record(recipe, run, data, found):
    """Writes what the recipe means here, or checks that it still does."""
    manifest = (data.directory / "manifest.json").read_bytes()
    resolved = {
        "prepared": str(data.directory.resolve()),
        "manifest_sha256": hashlib.sha256(manifest).hexdigest(),
        "tokenizer": dict(data.manifest["tokenizer"]),
        "corpora": data.manifest["corpora"],
        "versions": provenance.versions(),
        "commit": provenance.commit(),
    }
    if found is not None:
        resolved["batch"] = found
    if run.recipe_file.is_file():
        before = run.recipe().resolved.get("tokenizer")
        if before and before != resolved["tokenizer"]:
            raise UserError(
                f"{data.directory}: its tokenizers are not those "
                f"{run.recipe_file} was started with. Use that data, or "
                "another run folder."
            )
        return
    run.copy_tokenizers(data.directory)
    save_recipe(recipe, run.recipe_file, resolved)


def _describe(recipe, data, plan):
    target_tokens = int(data.store("train").lengths[:, 1].sum())
    tokens = target_tokens / plan.batches_per_epoch
    epochs = recipe.training.steps / plan.batches_per_epoch
    return "\n".join(
        [
            describe_manifest(data.manifest),
            plan.describe(),
            f"{recipe.training.steps:,} updates of {tokens:,.0f} target tokens "
            f"on average, {epochs:.1f} epochs.",
        ]
    )


def _finish(recipe, run, data, step, quiet):
    """Averages, measures on the validation set, and seals the run."""
    manifest = data.manifest
    # A short run has fewer checkpoints than are to be averaged.
    last = min(
        recipe.training.average_checkpoints, len(run.checkpoints().steps())
    )
    model, steps = average_into(recipe, run, manifest, last)
    logs = [logs for _, logs in run.history()]
    content = {
        "name": recipe.name,
        "preset": recipe.model.preset,
        "overrides": recipe.model.overrides,
        "source_vocabulary_size": manifest["source_vocabulary_size"],
        "target_vocabulary_size": manifest["target_vocabulary_size"],
        "tokenizer": dict(manifest["tokenizer"]),
        "weights_sha256": run.write_model(model),
        "steps": step,
        "averaged_steps": steps,
        "decoding": {
            "num_beams": recipe.decoding.num_beams,
            "length_penalty": recipe.decoding.length_penalty,
            "batch_size": recipe.decoding.batch_size,
        },
        "evaluation": {
            "tokenize": recipe.evaluation.tokenize,
            "lowercase": recipe.evaluation.lowercase,
            "metrics": list(recipe.evaluation.metrics),
        },
        "seed": recipe.seed,
        "parameters": model.count_params(),
        "training": _speed(logs),
        "valid": _valid_scores(recipe, data, model),
        "device": provenance.device(),
        "versions": provenance.versions(),
        "commit": provenance.commit(),
    }
    write_json(run.run_file, content)
    for name, score in content["valid"].items():
        _say(
            quiet,
            f"valid {name} {score['value']:.2f} ({score['signature']}), mean "
            f"of {len(steps)} checkpoints",
        )
    return content


def _speed(logs):
    """Wall time and throughput over all starts of a run, from its log."""
    seconds = sum(row.get("seconds", 0.0) for row in logs)
    tokens = sum(row.get("tokens", 0.0) for row in logs)
    compiling = sum(row.get("compile_seconds", 0.0) for row in logs)
    busy = sum(
        row["tokens"] / row["tokens_per_second"]
        for row in logs
        if row.get("tokens_per_second")
    )
    return {
        "seconds": round(seconds, 1),
        "target_tokens": int(tokens),
        "target_tokens_per_second": round(tokens / busy, 1) if busy else None,
        "compile_seconds": round(compiling, 1),
    }


def _valid_scores(recipe, data, model):
    if "valid" not in data.splits:
        return {}
    sources, references = data.texts("valid")
    translator = Translator(
        model,
        data.source_tokenizer,
        data.target_tokenizer,
        num_beams=recipe.decoding.num_beams,
        length_penalty=recipe.decoding.length_penalty,
        batch_size=recipe.decoding.batch_size,
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


def _say(quiet, text):
    if not quiet:
        print(text, file=sys.stderr, flush=True)
