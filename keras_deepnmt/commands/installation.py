"""What is installed, what conflicts, and the command that mends it."""

import subprocess
import sys
from importlib import metadata

from packaging.requirements import Requirement

_DISTRIBUTION = "keras_deepnmt"


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
