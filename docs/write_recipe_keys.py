"""Writes the page of all recipe keys, and two files that are installed.

They are the JSON Schema of recipes, and the plain model of each preset, whose
recipes the preset can use.

python docs/write_recipe_keys.py
"""

import json
import re
from pathlib import Path

import yaml

from keras_deepnmt.models import ConvSeq2Seq, Transformer
from keras_deepnmt.recipes.bundled import PLAIN_PRESETS_FILE
from keras_deepnmt.recipes.reference import (
    json_schema,
    reference_page,
    schema_file,
)
from keras_deepnmt.zoo import list_models
from keras_deepnmt.zoo.registry import get_preset

PLAIN = {Transformer: "transformer", ConvSeq2Seq: "conv_seq2seq"}
SIZE = re.compile(r"_((?:tiny|small|base|big|\d+l)(?:_embed_\d+)?)(_matched)?$")


def plain_presets() -> dict[str, str]:
    """Maps each preset to the plain model of its paper, or of its backbone."""
    baselines = {
        (get_preset(name).paper, SIZE.search(name)[1]): name
        for name in list_models("*_baseline_*")
    }
    plain = {}
    for name in list_models():
        preset, size = get_preset(name), SIZE.search(name)[1]
        usual = f"{PLAIN[preset.model]}_{size}"
        plain[name] = baselines.get((preset.paper, size), usual)
    return {name: model for name, model in plain.items() if name != model}


def files() -> dict[Path, str]:
    """Returns the content of each file that this script writes."""
    schema = json_schema(list_models(), (Transformer, ConvSeq2Seq))
    return {
        Path(__file__).parent / "recipe_keys.md": reference_page(),
        schema_file(): json.dumps(schema, indent=1, ensure_ascii=False) + "\n",
        schema_file().with_name(PLAIN_PRESETS_FILE): yaml.safe_dump(
            plain_presets(), sort_keys=False
        ),
    }


if __name__ == "__main__":
    for file, content in files().items():
        file.write_text(content, encoding="utf-8")
        print(file)
