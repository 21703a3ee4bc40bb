"""Translating texts as documents have them: with markup, of many sentences."""

from keras_deepnmt.documents.files import (
    TranslatedDocument as TranslatedDocument,
)
from keras_deepnmt.documents.files import (
    translate_document as translate_document,
)
from keras_deepnmt.documents.segments import Segments as Segments
from keras_deepnmt.documents.segments import (
    TranslatedSegment as TranslatedSegment,
)
from keras_deepnmt.documents.segments import (
    translate_segments as translate_segments,
)
from keras_deepnmt.documents.sentences import (
    SentenceSplitter as SentenceSplitter,
)
