"""`deepnmt doctor`: shows that this machine trains as it should."""

import tempfile
from pathlib import Path

from jsonargparse import Namespace
from jsonargparse.typing import PositiveInt

from keras_deepnmt.commands.console import Console
from keras_deepnmt.commands.installation import (
    import_fault,
    requirement_faults,
)
from keras_deepnmt.commands.options import VerbParser
from keras_deepnmt.commands.quiet_import import import_backend
from keras_deepnmt.errors import UserError

EXAMPLE = """
deepnmt doctor
deepnmt doctor --replicas 2
"""
CONTINUE = "Nothing was changed."


def add_options(parser: VerbParser) -> None:
    """Adds this verb's options.

    Args:
        parser: the verb's parser.
    """
    parser.add_argument(
        "--replicas",
        type=PositiveInt,
        default=1,
        help="Also prove, with so many replicas, that they train as one "
        "device does. Default: 1, no proof.",
    )


def run(options: Namespace) -> None:
    """Prints versions and devices, and the proof's table.

    Args:
        options: what the parser returned.

    Raises:
        UserError: if something conflicts or a difference is too large.
    """
    console = Console(options.quiet)
    faults = requirement_faults()
    if not faults:
        console.say("Every package is in the range that is needed.")
        import_backend()
        strategy = _strategy(options.replicas)
        _print_versions_and_devices()
        faults = _import_faults(console)
    if faults:
        raise UserError("\n".join(faults))
    if strategy is not None:
        _prove(strategy, console)


def _strategy(num_replicas):
    """Divides the processor while it can be: before TensorFlow starts."""
    from keras_deepnmt.training.strategies import make_strategy

    if num_replicas == 1:
        return None
    return make_strategy("mirrored", num_replicas)


def _print_versions_and_devices():
    from keras_deepnmt.runs import provenance

    for package, version in provenance.versions().items():
        print(f"{package} {version}")
    for name, value in provenance.device().items():
        print(f"{name}: {value if value != [] else 'none'}")


def _import_faults(console):
    console.say("Importing TensorFlow-Text in a fresh process ...")
    remedy = 'python -m pip install "tensorflow-text>=2.21.1,<2.22"'
    fault = import_fault("tensorflow_text", remedy)
    return [fault] if fault else []


def _prove(strategy, console):
    from keras_deepnmt.training.replica_proof import LIMIT, STEPS, proof_rows

    console.say(
        f"\nTraining a tiny Transformer for {STEPS} updates without dropout; "
        "the largest difference of any weight from one device's:"
    )
    print(f"{'':34}{'optimizer':11}{'difference':>10}  {'seconds':>7}")
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        for row in proof_rows(strategy, Path(folder)):
            mark = "" if row.holds else f"  above {LIMIT:.0e}"
            print(
                f"{row.name:34}{row.optimizer:11}{row.difference:10.1e}  "
                f"{row.seconds:7.1f}{mark}",
                flush=True,
            )
            if not row.holds:
                failed.append(f"{row.name} ({row.optimizer})")
    if failed:
        raise UserError(
            f"replicas do not train as one device does: {', '.join(failed)}. "
            "Train on one device, and report these lines with the versions "
            "above."
        )
    console.say("Replicas train as one device does.")
