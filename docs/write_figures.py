"""Writes the figures of the guides, which are outputs of the notebooks.

python docs/write_figures.py
"""

import base64
import json
from pathlib import Path

DOCS = Path(__file__).parent
NOTEBOOKS = DOCS.parent / "notebooks"
# Each figure is the n-th image of a notebook, from 0.
FIGURES = {
    "aggregation_inputs": ("02_layer_aggregation", 2),
    "branch_global": ("03_hybrid_self_attention", 0),
    "branch_forward": ("03_hybrid_self_attention", 1),
    "branch_backward": ("03_hybrid_self_attention", 2),
    "branch_local": ("03_hybrid_self_attention", 3),
    "training_loss": ("03_hybrid_self_attention", 4),
    "gate_shares": ("03_hybrid_self_attention", 5),
    "without_branch": ("03_hybrid_self_attention", 6),
    "forward_attention": ("03_hybrid_self_attention", 8),
    "layer_attention": ("04_layer_attention_and_surface_fusion", 2),
    "masked_encoder_layer": ("04_layer_attention_and_surface_fusion", 3),
    "role_uses": ("05_role_interaction", 2),
    "dense_encoder": ("06_dense_nmt", 3),
    "composed_gates": ("09_compose_papers", 1),
    "reversed_digits": ("01_transformer_from_layers", 0),
}


def images(notebook: str) -> list[bytes]:
    """Returns the images that a notebook was committed with, in their order."""
    cells = json.loads((NOTEBOOKS / f"{notebook}.ipynb").read_text("utf-8"))
    return [
        base64.b64decode("".join(output["data"]["image/png"]))
        for cell in cells["cells"]
        for output in cell.get("outputs", ())
        if "image/png" in output.get("data", {})
    ]


def files() -> dict[Path, bytes]:
    """Returns the file and the content of each figure."""
    return {
        DOCS / "images" / f"{name}.png": images(notebook)[index]
        for name, (notebook, index) in FIGURES.items()
    }


def main():
    """Writes the figures."""
    for file, content in files().items():
        file.write_bytes(content)


if __name__ == "__main__":
    main()
