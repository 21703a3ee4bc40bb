"""The mark between the sentences of a source text in context."""

# A user-defined symbol of the tokenizers whose texts have contexts.
CONTEXT_MARK = "<sep>"
