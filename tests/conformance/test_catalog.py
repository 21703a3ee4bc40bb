"""Nothing public is missing from the catalogue."""

import catalog


def test_every_public_layer_and_preset_has_an_entry():
    assert not catalog.missing_entries()


def test_names_are_unique():
    for entries in (catalog.LAYERS, catalog.MODELS):
        names = [entry.name for entry in entries]
        assert len(set(names)) == len(names)


def test_a_missing_entry_is_noticed(monkeypatch):
    gone = {"Dropout", "contextualized_embedding_tiny"}
    for name in ("LAYERS", "MODELS"):
        entries = getattr(catalog, name)
        left = [entry for entry in entries if entry.name not in gone]
        monkeypatch.setattr(catalog, name, left)
    assert catalog.missing_entries() == {"Dropout", "contextualized_embedding"}
