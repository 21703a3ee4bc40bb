"""Models of other toolkits and engines, read and written.

`import_model` writes a preset folder, which everything else takes: it
translates, is evaluated, fine-tuned, analyzed and exported.
`export_ctranslate2`, `export_marian` and `export_onnx` write models for other
engines.

The parts are loaded when they are first used, so that a process with another
engine needs neither Keras nor a backend.
"""

import typing

from keras_deepnmt.lazy_names import lazy_names

# For type checkers and the API reference, which do not run `__getattr__`.
if typing.TYPE_CHECKING:
    from keras_deepnmt.exchange.ctranslate2_export import (
        export_ctranslate2 as export_ctranslate2,
    )
    from keras_deepnmt.exchange.ctranslate2_import import (
        load_ctranslate2 as load_ctranslate2,
    )
    from keras_deepnmt.exchange.engine_folders import Engine as Engine
    from keras_deepnmt.exchange.engine_folders import find_engine as find_engine
    from keras_deepnmt.exchange.engine_folders import (
        verify_engine_folder as verify_engine_folder,
    )
    from keras_deepnmt.exchange.eole import load_eole as load_eole
    from keras_deepnmt.exchange.imported_model import (
        ImportedModel as ImportedModel,
    )
    from keras_deepnmt.exchange.importing import FORMATS as FORMATS
    from keras_deepnmt.exchange.importing import import_model as import_model
    from keras_deepnmt.exchange.joeynmt import load_joeynmt as load_joeynmt
    from keras_deepnmt.exchange.marian_hf import load_marian as load_marian
    from keras_deepnmt.exchange.marian_hf_export import (
        export_marian as export_marian,
    )
    from keras_deepnmt.exchange.marian_npz import (
        load_marian_npz as load_marian_npz,
    )
    from keras_deepnmt.exchange.onnx_export import export_onnx as export_onnx
    from keras_deepnmt.exchange.opennmt_py import (
        load_opennmt_py as load_opennmt_py,
    )
    from keras_deepnmt.exchange.torch_transformer import (
        load_torch_transformer as load_torch_transformer,
    )

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "Engine": "engine_folders",
        "FORMATS": "importing",
        "ImportedModel": "imported_model",
        "export_ctranslate2": "ctranslate2_export",
        "export_marian": "marian_hf_export",
        "export_onnx": "onnx_export",
        "find_engine": "engine_folders",
        "import_model": "importing",
        "load_ctranslate2": "ctranslate2_import",
        "load_eole": "eole",
        "load_joeynmt": "joeynmt",
        "load_marian": "marian_hf",
        "load_marian_npz": "marian_npz",
        "load_opennmt_py": "opennmt_py",
        "load_torch_transformer": "torch_transformer",
        "verify_engine_folder": "engine_folders",
    },
)
