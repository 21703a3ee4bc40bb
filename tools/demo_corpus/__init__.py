"""The grammar that generated the demo corpus: German and English together.

`keras_deepnmt.data.demo` says what the corpus contains. From the root of the
repository, `python -m tools.demo_corpus` writes the file that the package
holds. `generate_pairs` gives more pairs than that file has.
"""
