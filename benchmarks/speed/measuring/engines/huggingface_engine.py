"""Translates with Hugging Face, from the files of `decoding_weights.py`."""

import numpy as np

from benchmarks.speed.measuring.engines.rows_of_ids import (
    BEGIN_ID,
    END_ID,
    NUM_CORES,
    PADDING_ID,
    batches,
    padded,
    read_sizes,
    without_end,
)


class HuggingFace:
    """Hugging Face's Marian model."""

    packages = ("transformers", "torch")

    def __init__(self, folder):
        import torch
        from transformers import MarianMTModel

        torch.set_num_threads(NUM_CORES)
        self.torch = torch
        self.model = MarianMTModel.from_pretrained(folder / "huggingface")
        self.model.eval()
        # Neither is in its files.
        epsilon = read_sizes(folder)["layer_norm_epsilon"]
        positions = torch.from_numpy(np.load(folder / "positions.npy"))
        for module in self.model.modules():
            if isinstance(module, torch.nn.LayerNorm):
                module.eps = epsilon
        for stack in (self.model.model.encoder, self.model.model.decoder):
            stack.embed_positions.weight.data = positions

    @staticmethod
    def build(folder):
        import torch
        from transformers import MarianConfig, MarianMTModel

        sizes, arrays = read_sizes(folder), dict(np.load(folder / "model.npz"))
        if sizes["normalize_first"]:
            raise ValueError("Marian has no normalization before sub-layers.")
        np.save(folder / "positions.npy", arrays["positions"])
        config = MarianConfig(
            vocab_size=sizes["vocabulary_size"],
            max_position_embeddings=len(arrays["positions"]),
            d_model=sizes["hidden_dim"],
            encoder_layers=sizes["num_encoder_layers"],
            decoder_layers=sizes["num_decoder_layers"],
            encoder_ffn_dim=sizes["intermediate_dim"],
            decoder_ffn_dim=sizes["intermediate_dim"],
            encoder_attention_heads=sizes["num_heads"],
            decoder_attention_heads=sizes["num_heads"],
            activation_function="relu",
            scale_embedding=True,
            pad_token_id=PADDING_ID,
            eos_token_id=END_ID,
            decoder_start_token_id=BEGIN_ID,
            forced_eos_token_id=None,
            dropout=0.0,
        )
        model = MarianMTModel(config)
        state = model.state_dict()
        values = _marian_values(arrays, sizes)
        # Tokens that must not be produced.
        bias = np.zeros((1, sizes["vocabulary_size"]), "float32")
        bias[0, [PADDING_ID, BEGIN_ID]] = -1e9
        values["final_logits_bias"] = bias
        tied = [n for n in state if n.endswith("embed_tokens.weight")]
        for name in ("model.shared.weight", "lm_head.weight", *tied):
            values[name] = arrays["embedding"]
        for side in ("encoder", "decoder"):
            name = f"model.{side}.embed_positions.weight"
            values[name] = arrays["positions"]
        model.load_state_dict(
            {name: torch.from_numpy(values[name]) for name in state}
        )
        model.save_pretrained(folder / "huggingface")

    def prepare(self, case):
        """Returns what `translate` takes."""
        return case

    def translate(self, case):
        """Translates; returns the rows of ids without the end id."""
        rows = []
        length = case["steps"] or case["max_length"]
        for batch in batches(case):
            source_ids = self.torch.from_numpy(padded(batch))
            with self.torch.inference_mode():
                found = self.model.generate(
                    source_ids,
                    attention_mask=source_ids.ne(PADDING_ID).long(),
                    num_beams=case["num_beams"],
                    do_sample=False,
                    min_new_tokens=case["steps"] or None,
                    max_new_tokens=length,
                    **self._beam_options(case),
                )
            # Without the begin id.
            rows += [without_end(row) for row in found[:, 1:].numpy()]
        return rows

    def _beam_options(self, case):
        if case["num_beams"] == 1:
            return {}
        return {
            "length_penalty": case["length_penalty"],
            "early_stopping": True,
        }

    def score(self, sources, targets):
        """Returns the sums of log-probabilities of targets, end included."""
        torch = self.torch
        source_ids = torch.from_numpy(padded(sources))
        labels = torch.from_numpy(padded([[*row, END_ID] for row in targets]))
        begin = torch.full_like(labels[:, :1], BEGIN_ID)
        with torch.inference_mode():
            logits = self.model(
                input_ids=source_ids,
                attention_mask=source_ids.ne(PADDING_ID).long(),
                decoder_input_ids=torch.cat([begin, labels[:, :-1]], 1),
            ).logits
        # The bias only excludes tokens, and is not a part of the model.
        logits = logits - self.model.final_logits_bias
        values = torch.log_softmax(logits, -1).gather(2, labels[..., None])
        return (values[..., 0] * labels.ne(PADDING_ID)).sum(1).tolist()


def _marian_values(arrays, sizes):
    """Returns the arrays of all blocks under the names of `MarianMTModel`."""
    attentions = {"attention": "self_attn", "cross_attention": "encoder_attn"}
    parts = {"query": "q_proj", "key": "k_proj", "value": "v_proj"}
    parts |= {"output": "out_proj"}
    values = {}

    def set_dense(ours, theirs):
        kernel = arrays[f"{ours}.kernel"].T
        values[f"{theirs}.weight"] = np.ascontiguousarray(kernel)
        values[f"{theirs}.bias"] = arrays[f"{ours}.bias"]

    def set_norm(ours, theirs):
        values[f"{theirs}.weight"] = arrays[f"{ours}.norm.gamma"]
        values[f"{theirs}.bias"] = arrays[f"{ours}.norm.beta"]

    for side in ("encoder", "decoder"):
        for number in range(sizes[f"num_{side}_layers"]):
            block = f"{side}.{number}"
            layer = f"model.{side}.layers.{number}"
            for name, theirs in attentions.items():
                if f"{block}.{name}.norm.gamma" not in arrays:
                    continue
                for part, projection in parts.items():
                    set_dense(
                        f"{block}.{name}.{part}",
                        f"{layer}.{theirs}.{projection}",
                    )
                set_norm(f"{block}.{name}", f"{layer}.{theirs}_layer_norm")
            network = f"{block}.feed_forward"
            set_dense(f"{network}.intermediate", f"{layer}.fc1")
            set_dense(f"{network}.output", f"{layer}.fc2")
            set_norm(network, f"{layer}.final_layer_norm")
    return values
