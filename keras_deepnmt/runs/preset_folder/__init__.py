"""Preset folders: models of runs in the layout of Keras presets, to share."""
