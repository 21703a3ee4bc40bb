"""Export of a translator as a SavedModel, verification, and clients.

The parts are loaded when they are first used: clients need no backend.
"""

import typing

from keras_deepnmt.lazy_names import lazy_names

# For type checkers and the API reference, which do not run `__getattr__`.
if typing.TYPE_CHECKING:
    from keras_deepnmt.serving.clients import RestClient as RestClient
    from keras_deepnmt.serving.clients import (
        SavedModelClient as SavedModelClient,
    )
    from keras_deepnmt.serving.endpoint_verification import (
        verify_endpoint as verify_endpoint,
    )
    from keras_deepnmt.serving.exporting import export as export
    from keras_deepnmt.serving.grpc_client import GrpcClient as GrpcClient
    from keras_deepnmt.serving.verification import (
        translate_in_fresh_process as translate_in_fresh_process,
    )
    from keras_deepnmt.serving.verification import verify as verify

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "GrpcClient": "grpc_client",
        "RestClient": "clients",
        "SavedModelClient": "clients",
        "export": "exporting",
        "translate_in_fresh_process": "verification",
        "verify": "verification",
        "verify_endpoint": "endpoint_verification",
    },
)
