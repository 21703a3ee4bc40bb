"""`deepnmt doctor`: checks the installation and training with replicas."""

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
from keras_deepnmt.processes import run_python

EXAMPLE = """
deepnmt doctor
deepnmt doctor --replicas 2
"""
CONTINUE = "Nothing was changed."

_DISTRIBUTION = "keras_deepnmt"


def add_options(parser: VerbParser) -> None:
    """Adds the options of `deepnmt doctor`."""
    parser.add_argument(
        "--replicas",
        type=PositiveInt,
        default=1,
        metavar="N",
        help="Number of replicas. If it is 2 or more, also train a tiny model "
        "on N devices and check that it gets the same weights as on one "
        "device. Without accelerators the processor is divided into N logical "
        "devices.",
    )


def run(options: Namespace) -> None:
    """Prints versions, devices and the results of the replica check.

    Raises `UserError` if a package has an unsupported version or a weight
    differs too much.
    """
    console = Console(options.quiet)
    faults = requirement_faults()
    if not faults:
        console.print("Supported versions of all packages are installed.")
        import_backend()
        strategy = _strategy(options.replicas)
        _print_versions_and_devices()
        faults = _import_faults(console)
    if faults:
        raise UserError("\n".join(faults))
    if strategy is not None:
        _prove(strategy, console)


def requirement_faults(requirements: list[str] | None = None) -> list[str]:
    """Returns a sentence for each requirement that is not met.

    Each sentence ends with the command that installs it. `requirements` are
    pip requirement strings and default to those of this package, without its
    extras.
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
    """Imports a module in a new process, because the import may crash it.

    Returns `None` if it succeeds; otherwise a sentence with the last line of
    the error and the remedy, a command that fixes it.
    """
    result = run_python(["-c", f"import {module}"])
    if result.returncode == 0:
        return None
    lines = result.stderr.strip().splitlines() or [
        f"exit code {result.returncode}"
    ]
    return f"{module} cannot be imported ({lines[-1]}). {remedy}"


def _strategy(num_replicas):
    """Makes the strategy for several replicas, `None` for one.

    Must be called before TensorFlow is initialized: the processor cannot be
    split into logical devices afterwards.
    """
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
    console.print("Importing TensorFlow-Text in a new process ...")
    remedy = 'python -m pip install "tensorflow-text>=2.21.1,<2.22"'
    fault = import_fault("tensorflow_text", remedy)
    return [fault] if fault else []


def _prove(strategy, console):
    from keras_deepnmt.training.replica_proof import LIMIT, STEPS, proof_rows

    console.print(
        f"\nTraining a tiny Transformer for {STEPS} updates without dropout. "
        "Largest difference of a weight from training on one device:"
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
            "training with replicas differs from training on one device: "
            f"{', '.join(failed)}. Train on one device, and report this table "
            "with the versions above."
        )
    console.print(
        "Training with replicas gives the same weights as one device."
    )
