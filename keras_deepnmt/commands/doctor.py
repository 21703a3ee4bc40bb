"""`deepnmt doctor`: shows that this machine trains as it should."""

import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

from jsonargparse import Namespace
from jsonargparse.typing import PositiveInt
from packaging.requirements import Requirement

from keras_deepnmt.commands.options.parser import VerbParser
from keras_deepnmt.commands.terminal.console import Console
from keras_deepnmt.commands.terminal.quiet_import import import_backend
from keras_deepnmt.errors import UserError

EXAMPLE = """
deepnmt doctor
deepnmt doctor --replicas 2
"""
CONTINUE = "Nothing was changed."

_DISTRIBUTION = "keras_deepnmt"


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


def requirement_faults(requirements: list[str] | None = None) -> list[str]:
    """Compares what is installed with what this package needs.

    Args:
        requirements: lines of the requirement format. Defaults to those of
            this package, without its extras.

    Returns:
        One sentence for each conflict, with the command that mends it.

    Example:
    >>> requirement_faults(["keras>=99"])[0].endswith('"keras>=99"')
    True
    """
    if requirements is None:
        requirements = metadata.requires(_DISTRIBUTION) or []
    faults = []
    for requirement in map(Requirement, requirements):
        if requirement.marker and not requirement.marker.evaluate(
            {"extra": ""}
        ):
            continue
        needed = f"{requirement.name}{requirement.specifier}"
        remedy = f'python -m pip install "{needed}"'
        try:
            version = metadata.version(requirement.name)
        except metadata.PackageNotFoundError:
            faults.append(f"{requirement.name} is not installed. {remedy}")
            continue
        if not requirement.specifier.contains(version, prereleases=True):
            faults.append(
                f"{requirement.name} {version} is installed, "
                f"{requirement.specifier} is needed. {remedy}"
            )
    return faults


def import_fault(module: str, remedy: str) -> str | None:
    """Tries an import in a fresh process, which it may bring down.

    Args:
        module: name of the module.
        remedy: the command that mends a failure.

    Returns:
        `None`, or one sentence with the error's last line and the remedy.

    Example:
    >>> import_fault("json", "nothing") is None
    True
    """
    result = subprocess.run(
        [sys.executable, "-c", f"import {module}"],
        capture_output=True,
        text=True,
    )
    if result.returncode == 0:
        return None
    lines = result.stderr.strip().splitlines() or [
        f"exit code {result.returncode}"
    ]
    return f"{module} cannot be imported ({lines[-1]}). {remedy}"


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
