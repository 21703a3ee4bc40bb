"""Translates with JoeyNMT, by a model of the same sizes as ours."""

from benchmarks.speed.measuring.engines.rows_of_ids import (
    NUM_CORES,
    batches,
    padded,
    read_sizes,
)


class JoeyNMT:
    """JoeyNMT, with random weights of its own."""

    packages = ("joeynmt", "torch")

    def __init__(self, folder):
        import torch

        torch.set_num_threads(NUM_CORES)
        self.torch = torch
        self.model = self._make_model(folder)
        self.model.load_state_dict(torch.load(folder / "joeynmt.pt"))
        self.model.eval()

    @classmethod
    def build(cls, folder):
        import torch

        torch.manual_seed(0)
        torch.save(cls._make_model(folder).state_dict(), folder / "joeynmt.pt")

    @staticmethod
    def _make_model(folder):
        from types import SimpleNamespace

        from joeynmt.model import build_model
        from joeynmt.vocabulary import Vocabulary

        sizes = read_sizes(folder)
        names = SimpleNamespace(
            **dict(unk_token="<unk>", pad_token="<pad>", sep_token=None),
            **dict(bos_token="<s>", eos_token="</s>", lang_tags=[]),
            **dict(unk_id=0, pad_id=1, bos_id=2, eos_id=3, sep_id=None),
        )
        tokens = [f"t{n}" for n in range(4, sizes["vocabulary_size"])]
        vocabulary = Vocabulary(tokens, names)
        stack = {
            "type": "transformer",
            "num_heads": sizes["num_heads"],
            "embeddings": {
                "embedding_dim": sizes["hidden_dim"],
                "scale": True,
            },
            "hidden_size": sizes["hidden_dim"],
            "ff_size": sizes["intermediate_dim"],
            "dropout": 0.0,
            "layer_norm": "post",
        }
        configuration = {
            "tied_embeddings": True,
            "tied_softmax": True,
            "encoder": {**stack, "num_layers": sizes["num_encoder_layers"]},
            "decoder": {**stack, "num_layers": sizes["num_decoder_layers"]},
        }
        return build_model(configuration, vocabulary, vocabulary)

    def prepare(self, case):
        """Returns what `translate` takes."""
        if not case["steps"]:
            raise ValueError("JoeyNMT has random weights, which never end.")
        return case

    def translate(self, case):
        """Translates; returns the rows of ids."""
        from joeynmt.batch import Batch
        from joeynmt.search import search

        rows = []
        for batch in batches(case):
            source_ids = self.torch.from_numpy(
                padded(batch, self.model.pad_index)
            )
            found, _, _ = search(
                self.model,
                Batch(
                    source_ids,
                    self.torch.tensor(list(map(len, batch))),
                    *(None, None, None),
                    indices=self.torch.arange(len(batch)),
                    device=self.torch.device("cpu"),
                    pad_index=self.model.pad_index,
                    eos_index=self.model.eos_index,
                    is_train=False,
                ),
                max_output_length=case["steps"],
                beam_size=case["num_beams"],
                beam_alpha=0.0,
                min_output_length=case["steps"],
            )
            rows += found.astype(int).tolist()
        return rows
