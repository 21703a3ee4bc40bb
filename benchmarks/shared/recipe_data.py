"""Prepared data of bundled recipes."""

import os
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
DEMO = "transformer_tiny.demo_de_en"


def prepare_recipe(name, folder, changes=None):
    """Prepares the corpora of a recipe in a folder; returns recipe and data.

    `changes` replaces values of the recipe by dotted key.

    The demo recipe gets the embedded corpus, written into the folder. Named
    corpora are read from the folder that the environment variable DEEPNMT_DATA
    names, or from `../shared/data`; without it the script exits.
    """
    from keras_deepnmt.data.preparation.prepare_corpus import prepare_corpus
    from keras_deepnmt.data.prepared_data import PreparedData

    changes = changes or {}
    if name == DEMO:
        recipe, data_dir = _load_demo(folder, changes)
    else:
        recipe, data_dir = _load_named(name, changes)
    prepared = Path(folder) / "prepared"
    prepare_corpus(recipe.data, prepared, data_dir=data_dir, progress=False)
    return recipe, PreparedData(prepared)


def _load_demo(folder, changes):
    from keras_deepnmt.data.demo import write_demo_corpus
    from keras_deepnmt.recipes.loading import load_recipe

    corpus = Path(folder) / "corpus"
    write_demo_corpus(corpus, num_train=40_000, num_test=50)
    train, test = (
        {
            "source": str(corpus / f"{split}.de"),
            "target": str(corpus / f"{split}.en"),
        }
        for split in ("train", "test")
    )
    changes = {"data.train": [train], "data.test": test, **changes}
    return load_recipe(DEMO, changes), None


def _load_named(name, changes):
    from keras_deepnmt.recipes.loading import load_recipe

    default = REPOSITORY.parent / "shared" / "data"
    data_dir = Path(os.environ.get("DEEPNMT_DATA", default))
    if not data_dir.is_dir():
        raise SystemExit(f"No corpora at {data_dir}; set DEEPNMT_DATA.")
    return load_recipe(name, changes), data_dir
