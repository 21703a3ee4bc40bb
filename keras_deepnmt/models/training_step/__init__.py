"""The training step of all models: the objective, its gradient, the update.

`tensorflow_*.py` hold the step on TensorFlow, `stateless_step.py` the step on
JAX; the other modules are used by both.
"""
