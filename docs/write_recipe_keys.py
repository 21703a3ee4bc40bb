"""Writes the page of all recipe keys, and the JSON Schema that is installed.

python docs/write_recipe_keys.py
"""

import json
from pathlib import Path

from keras_deepnmt.models import ConvSeq2Seq, Transformer
from keras_deepnmt.recipes.reference import (
    json_schema,
    reference_page,
    schema_file,
)
from keras_deepnmt.zoo import list_models


def files() -> dict[Path, str]:
    """Returns the content of each file that this script writes."""
    schema = json_schema(list_models(), (Transformer, ConvSeq2Seq))
    return {
        Path(__file__).parent / "recipe_keys.md": reference_page(),
        schema_file(): json.dumps(schema, indent=1, ensure_ascii=False) + "\n",
    }


if __name__ == "__main__":
    for file, content in files().items():
        file.write_text(content, encoding="utf-8")
        print(file)
