"""Export of a translator as a SavedModel, verification, and clients."""

from keras_deepnmt.serving.clients import RestClient as RestClient
from keras_deepnmt.serving.clients import SavedModelClient as SavedModelClient
from keras_deepnmt.serving.endpoint_verification import (
    verify_endpoint as verify_endpoint,
)
from keras_deepnmt.serving.exporting import export as export
from keras_deepnmt.serving.grpc_client import GrpcClient as GrpcClient
from keras_deepnmt.serving.verification import (
    translate_in_fresh_process as translate_in_fresh_process,
)
from keras_deepnmt.serving.verification import verify as verify
