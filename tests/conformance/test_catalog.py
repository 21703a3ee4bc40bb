"""Nothing public is missing from the catalogue."""

import catalog


def test_every_public_layer_and_preset_has_an_entry():
    assert not catalog.missing_entries()


def test_names_are_unique():
    for entries in (catalog.LAYERS, catalog.MODELS):
        names = [entry.name for entry in entries]
        assert len(set(names)) == len(names)


def test_a_missing_entry_is_noticed(monkeypatch):
    monkeypatch.setattr(catalog, "LAYERS", catalog.LAYERS[2:])
    monkeypatch.setattr(catalog, "MODELS", catalog.MODELS[1:])
    expected = {"MultiHeadAttention", "transformer_tiny"}
    assert catalog.missing_entries() == expected
