"""A run compiles the shapes of its first updates ahead, in their order."""

from keras_deepnmt.models.training_step.tensorflow_step import TensorFlowStep


def test_the_shapes_to_come_are_compiled_ahead(
    train_in, without_search, monkeypatch, capsys
):
    planned, stops, met = [], [], []

    def plan(model, shapes):
        planned.append(list(shapes))
        met.append(model.training_shapes)
        return 2

    monkeypatch.setattr(TensorFlowStep, "compile_ahead", plan)
    monkeypatch.setattr(
        TensorFlowStep, "stop_compiling_ahead", lambda model: stops.append(1)
    )
    changes = {"training.max_shapes": 3, "training.batch_tokens": 40}
    train_in(changes, quiet=False)
    (shapes,) = planned
    assert len(shapes) == len(set(shapes)) > 1
    assert set(met[0]) == set(shapes)
    assert stops == [1]
    lines = capsys.readouterr().err.splitlines()
    assert f"compiling {len(shapes)} training shapes, 2 at a time" in lines
