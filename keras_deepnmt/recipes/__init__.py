"""Recipes: everything that makes a number reproducible, as a file."""

from keras_deepnmt.recipes.loading import list_recipes as list_recipes
from keras_deepnmt.recipes.loading import load_recipe as load_recipe
from keras_deepnmt.recipes.schema import Recipe as Recipe
