"""The options for several workers, on this machine or on many."""

from jsonargparse.typing import PositiveInt

from keras_deepnmt.commands.options.bounded_numbers import NonNegativeNumber
from keras_deepnmt.commands.options.parser import VerbParser

_CLUSTER = (
    "Ray cluster whose machines do the work: HOST:PORT of its head, or auto "
    "for that of this machine."
)


def add_workers(parser: VerbParser) -> None:
    """Adds the options that say where workers run, and how many."""
    _add_ray(
        parser,
        "Default: this machine alone, where Ray starts by itself.",
        "Default: as many as the machines have cores for, or GPUs.",
    )
    parser.add_argument(
        "--cores-per-worker",
        type=PositiveInt,
        default=1,
        metavar="N",
        help="Number of cores that each worker uses.",
    )
    parser.add_argument(
        "--gpus-per-worker",
        type=NonNegativeNumber,
        default=0.0,
        metavar="X",
        help="Number of GPUs of each worker, or a share of one.",
    )


def add_optional_workers(parser: VerbParser) -> None:
    """Adds the options for a command that needs no workers."""
    _add_ray(
        parser,
        "Default: no cluster.",
        "Default: as many as the cluster has cores for; without --ray, threads "
        "of this process.",
    )


def _add_ray(parser, no_cluster, no_number):
    parser.add_argument(
        "--ray",
        metavar="ADDRESS",
        help=f"{_CLUSTER} {no_cluster}",
    )
    parser.add_argument(
        "--workers",
        type=PositiveInt,
        metavar="N",
        help=f"Number of processes that work. {no_number}",
    )
