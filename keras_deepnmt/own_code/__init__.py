"""Layers, losses and other classes in files of the user."""

from keras_deepnmt.own_code.loading import import_code as import_code
