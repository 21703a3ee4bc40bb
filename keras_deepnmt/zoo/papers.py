"""The description of each paper for tables of papers and model cards."""

import dataclasses
from collections.abc import Mapping
from typing import Any

_PAPERS = {}


@dataclasses.dataclass(frozen=True)
class Paper:
    """A paper with presets, for the tables of papers and for model cards.

    Args:
        name: name that its presets are registered with, `"Song et al. (2018)"`.
        title: its title.
        links: the paper's address or addresses, in Markdown.
        changes: what the paper changes, in a few words.
        presets: patterns of the names of its presets, in Markdown.
        baseline: patterns of the names of the plain models that it compares
            with.
        embeddings: which matrices of embeddings its models share.
        dimensions: maps each size to arguments with the values that the paper
            prints; those of Vaswani et al. (2017) if it has none of its own.
    """

    name: str
    title: str
    links: str
    changes: str
    presets: str
    baseline: str = ""
    embeddings: str = "one matrix"
    dimensions: Mapping[str, Mapping[str, Any]] = dataclasses.field(
        default_factory=dict
    )

    @property
    def address(self) -> str:
        """The address of the first of the links."""
        return self.links.partition("](")[2].partition(")")[0]

    @property
    def year(self) -> int:
        """The year of publication, from the name."""
        return int(self.name[-5:-1])


def describe_paper(*arguments, **options):
    """Describes a paper; arguments are those of `Paper`.

    Raises a `ValueError` if the paper is described already.
    """
    paper = Paper(*arguments, **options)
    if paper.name in _PAPERS:
        raise ValueError(
            "A paper must be described once. Received a second description "
            f'of "{paper.name}". Remove one.'
        )
    _PAPERS[paper.name] = paper


def papers():
    """Returns all papers in the order of their years."""
    return sorted(_PAPERS.values(), key=lambda paper: (paper.year, paper.name))
