"""`deepnmt models`: lists presets, recipes and trained models."""

import json

from jsonargparse import Namespace

from keras_deepnmt.commands.options.own_code import add_import
from keras_deepnmt.commands.options.parser import VerbParser
from keras_deepnmt.commands.terminal.quiet_import import import_backend
from keras_deepnmt.errors import UserError
from keras_deepnmt.suggestions import did_you_mean
from keras_deepnmt.trained import describe_trained_model

EXAMPLE = """
deepnmt models "role_interaction_*"
deepnmt models "*_tiny" --quiet
deepnmt models --recipes
deepnmt models --trained
deepnmt models "*_tiny" --json
"""
CONTINUE = "Nothing was changed."
_METRICS = ("bleu", "chrf")
COLUMNS = {
    # column of the cost table: heading
    "preset": "preset",
    "parameters": "parameters",
    "extra_parameters": "more than plain",
    "step_ratio": "training x plain",
    "decode_ratio": "decoding x plain",
    "step_compile_seconds": "compile s",
    "paper": "paper",
}


def add_options(parser: VerbParser) -> None:
    """Adds the options of `deepnmt models`."""
    parser.add_argument(
        "pattern",
        metavar="PATTERN",
        nargs="?",
        default="*",
        help="Names to list; * and ? are wildcards. Extra parameters and times "
        "of a preset are relative to the plain model of the same backbone and "
        "size (transformer_* or conv_seq2seq_*). With --quiet only the names "
        "are printed. Default: all names.",
    )
    parser.add_argument(
        "--recipes",
        action="store_true",
        help="List the bundled recipes for `deepnmt train` instead of the "
        "presets.",
    )
    parser.add_argument(
        "--trained",
        action="store_true",
        help="List the trained models that come with the package instead: BLEU "
        "and chrF on their test sets, size, license and card. Commands that "
        "need no checkpoints of a run take their names in place of a run "
        "folder.",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="Print a JSON list with one object per preset, recipe or trained "
        "model.",
    )
    add_import(parser)


def run(options: Namespace) -> None:
    """Prints one line per name, or a JSON list of all."""
    if options.recipes and options.trained:
        raise UserError("--recipes and --trained cannot be given together.")
    if options.trained:
        from keras_deepnmt.trained import list_trained_models as list_names
    elif options.recipes:
        from keras_deepnmt.recipes.loading import list_recipes as list_names
    else:
        import_backend()
        from keras_deepnmt.own_code.loading import use_code
        from keras_deepnmt.zoo import list_models as list_names

        use_code([])  # presets of --import
    names = list_names(options.pattern)
    if not names:
        raise UserError(_no_match(options.pattern, list_names("*")))
    if options.json:
        describe = _describe_preset
        if options.recipes:
            describe = _describe_recipe
        elif options.trained:
            describe = describe_trained_model
        print(json.dumps(list(map(describe, names)), indent=2))
        return
    if options.recipes or options.quiet:
        lines = names
    else:
        make = trained_table if options.trained else preset_table
        lines = make(names)
    for line in lines:
        print(line)


def _no_match(pattern: str, names: list[str]) -> str:
    return (
        f"no name matches {pattern!r}.{did_you_mean(pattern, names)} Leave the "
        "pattern out to list all names."
    )


def _describe_recipe(name):
    return {"recipe": name, "preset": name.split(".")[0]}


def _describe_preset(name):
    from keras_deepnmt.zoo.costs import measured_costs

    row = measured_costs().get(name, {})
    numbers = {
        column: _number(row.get(column, ""))
        for column in COLUMNS
        if column not in ("preset", "paper")
    }
    return {"preset": name, **numbers, "paper": _paper(name)}


def _paper(name):
    """The paper of a preset; a preset of the user may name none."""
    from keras_deepnmt.zoo.registry import get_preset

    return getattr(get_preset(name), "paper", "")


def _number(value):
    """The number of a table's cell, `None` for an empty one."""
    if not value:
        return None
    return int(value) if value.lstrip("-").isdecimal() else float(value)


def preset_table(names: list[str]) -> list[str]:
    """Returns the lines of a table of presets, their costs and papers."""
    from keras_deepnmt.zoo.costs import measured_costs

    costs = measured_costs()
    rows = [list(COLUMNS.values())]
    for name in names:
        row = costs.get(name, {})
        cells = [_cell(row.get(column, "")) for column in COLUMNS]
        rows.append([name, *cells[1:-1], _paper(name)])
    return _aligned(rows, ["preset", "paper"])


def trained_table(names: list[str]) -> list[str]:
    """Returns the lines of a table of trained models."""
    rows = [["model", "BLEU", "chrF", "test set", "MB", "license", "card"]]
    for name in names:
        model = describe_trained_model(name)
        test = next(iter(model["scores"]), {})
        rows.append(
            [
                name,
                *(f"{test[m]:.1f}" if m in test else "-" for m in _METRICS),
                test.get("test_set", "-"),
                f"{model['bytes'] / 1e6:.1f}",
                model["license"],
                model["card"],
            ]
        )
    return _aligned(rows, ["model", "test set", "license", "card"])


def _aligned(rows, texts):
    """Returns the rows as lines; the columns `texts` are left-aligned."""
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if column in texts else cell.rjust(width)
            for column, cell, width in zip(rows[0], row, widths, strict=True)
        ).rstrip()
        for row in rows
    ]


def _cell(value: str) -> str:
    is_whole = value.removeprefix("-").isdecimal()
    return f"{int(value):,}" if is_whole else value or "-"
