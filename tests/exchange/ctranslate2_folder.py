"""Small models of CTranslate2, from its own specifications."""

import numpy as np
import sentencepiece
from ctranslate2.specs import TransformerSpec, common_spec
from marian_folder import ENGLISH, GERMAN, load

D, F, N, LAYERS = 8, 12, 2, (2, 1)
LENGTH = 40


def waves(order="halves", start=0):
    """A table of r^(2 i / D), as Marian models have in other toolkits."""
    places = np.arange(start, LENGTH + start)
    angles = places[:, None] / 10_000 ** (2 * np.arange(D // 2) / D)
    parts = [np.sin(angles), np.cos(angles)]
    if order == "halves":
        return np.concatenate(parts, axis=1)
    return np.stack(parts, axis=-1).reshape(LENGTH, D)


# What each model has that others do not, and a seed of its weights with which
# not all translations are the same.
KINDS = {
    "post-norm, shared": dict(shared=True, positions=waves()),
    "pre-norm, learned": dict(
        pre_norm=True,
        activation="GELU",
        positions=None,
        scale=False,
        tied=False,
        seed=5,
    ),
    "a begin of zeros, no table": dict(
        activation="SWISH", zero_begin=True, positions="none", seed=2
    ),
    "as OpenNMT": dict(
        pre_norm=True,
        activation="GELUSigmoid",
        positions=waves("interleaved"),
        begin="</s>",
        source_end=False,
        output_bias=False,
        seed=5,
    ),
    "a begin token of the source": dict(
        shared=True, positions=waves(), source_begin=True
    ),
}


def write_folder(
    folder,
    shared=False,
    pre_norm=False,
    activation="RELU",
    positions=None,
    scale=True,
    tied=True,
    zero_begin=False,
    begin="<s>",
    source_end=True,
    source_begin=False,
    output_bias=True,
    dtype=None,
    seed=0,
):
    """Writes a model with random weights, and its SentencePiece models."""
    random = np.random.default_rng(seed)
    folder.mkdir()
    pieces = _tokenizers(folder, shared, zero_begin)
    spec = TransformerSpec.from_config(
        LAYERS,
        N,
        pre_norm=pre_norm,
        activation=getattr(common_spec.Activation, activation),
    )

    def draw(*shape, mean=0.0, scale=0.4):
        return random.normal(mean, scale, shape).astype("float32")

    def norm(of):
        of.gamma, of.beta = draw(D, mean=1.0), draw(D)

    def linear(of, outputs, inputs=D):
        of.weight, of.bias = draw(outputs, inputs), draw(outputs)

    for side in ("encoder", "decoder"):
        stack = getattr(spec, side)
        stack.scale_embeddings = scale
        if positions is None:
            stack.position_encodings.encodings = draw(LENGTH, D)
        elif not isinstance(positions, str):
            table = positions.astype("float32")
            stack.position_encodings.encodings = table
        if pre_norm:
            norm(stack.layer_norm)
        for layer in stack.layer:
            norm(layer.self_attention.layer_norm)
            linear(layer.self_attention.linear[0], 3 * D)
            linear(layer.self_attention.linear[1], D)
            if side == "decoder":
                norm(layer.attention.layer_norm)
                for place, outputs in enumerate((D, 2 * D, D)):
                    linear(layer.attention.linear[place], outputs)
            norm(layer.ffn.layer_norm)
            linear(layer.ffn.linear_0, F)
            linear(layer.ffn.linear_1, D, F)
    sizes = [len(pieces[side]) for side in ("source", "target")]
    source = draw(sizes[0], D)
    target = source if shared else draw(sizes[1], D)
    spec.encoder.embeddings[0].weight = source
    spec.decoder.embeddings.weight = target
    output = target if tied else draw(sizes[1], D)
    spec.decoder.projection.weight = output
    if output_bias:
        spec.decoder.projection.bias = draw(sizes[1])
    spec.decoder.start_from_zero_embedding = zero_begin
    for side in ("source", "target"):
        getattr(spec, f"register_{side}_vocabulary")(pieces[side])
    spec.config.decoder_start_token = begin
    spec.config.add_source_eos = source_end
    spec.config.add_source_bos = source_begin
    spec.validate()
    spec.optimize(quantization=dtype)
    spec.save(str(folder))
    return folder


def _tokenizers(folder, shared, without_begin):
    """Writes both SentencePiece models; returns the vocabularies."""
    texts = {"source": GERMAN, "target": ENGLISH}
    if shared:
        texts = dict.fromkeys(texts, GERMAN + ENGLISH)
    pieces = {}
    for side, lines in texts.items():
        prefix = folder / side
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_prefix=str(prefix),
            vocab_size=60 if shared else 45,
            hard_vocab_limit=False,
            minloglevel=2,
        )
        prefix.with_suffix(".model").rename(folder / f"{side}.spm")
        prefix.with_suffix(".vocab").unlink()
        model = load(folder, side)
        names = [model.id_to_piece(i) for i in range(len(model))]
        if without_begin:
            names = ["</s>", "<unk>", *names[3:]]
        pieces[side] = names
    return pieces
