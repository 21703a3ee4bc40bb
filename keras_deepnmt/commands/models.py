"""`deepnmt models`: lists the model presets and the recipes."""

import json

from jsonargparse import Namespace

from keras_deepnmt.commands.options.own_code import add_import
from keras_deepnmt.commands.options.parser import VerbParser
from keras_deepnmt.commands.terminal.quiet_import import import_backend
from keras_deepnmt.errors import UserError
from keras_deepnmt.suggestions import did_you_mean

EXAMPLE = """
deepnmt models "role_interaction_*"
deepnmt models "*_tiny" --quiet
deepnmt models --recipes
deepnmt models "*_tiny" --json
"""
CONTINUE = "Nothing was changed."
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
        type=str,
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
        "--json",
        action="store_true",
        help="Print a JSON list with one object per preset or recipe.",
    )
    add_import(parser)


def run(options: Namespace) -> None:
    """Prints one line per preset or recipe, or a JSON list of all."""
    if options.recipes:
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
        describe = _describe_recipe if options.recipes else _describe_preset
        print(json.dumps(list(map(describe, names)), indent=2))
        return
    plain = options.recipes or options.quiet
    for line in names if plain else preset_table(names):
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
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            # The first and last columns are text, the others numbers.
            cell.ljust(width)
            if number in (0, len(row) - 1)
            else cell.rjust(width)
            for number, (cell, width) in enumerate(
                zip(row, widths, strict=True)
            )
        ).rstrip()
        for row in rows
    ]
    return lines


def _cell(value: str) -> str:
    is_whole = value.removeprefix("-").isdecimal()
    return f"{int(value):,}" if is_whole else value or "-"
