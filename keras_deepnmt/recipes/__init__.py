"""Recipe files: everything that is needed to reproduce a result."""

from keras_deepnmt.recipes.loading import list_recipes as list_recipes
from keras_deepnmt.recipes.loading import load_recipe as load_recipe
from keras_deepnmt.recipes.schema import Recipe as Recipe
