"""Filters of training pairs in files of the user."""

import inspect
from collections.abc import Callable, Sequence
from functools import partial

from keras_deepnmt.data.preparation.options import PrepareOptions
from keras_deepnmt.errors import UserError
from keras_deepnmt.own_code.loading import own_sha256
from keras_deepnmt.own_code.lookup import find_own, make_own, name_and_options

Pairs = Sequence[tuple[str, str]]


def make_own_filters(
    options: PrepareOptions,
) -> dict[str, Callable[[Pairs], list[bool]]]:
    """Makes the filters of the option `filters`, by the reason they give.

    Each returns for some pairs, as other filters read them, which to keep.
    """
    return {
        reason: partial(_keep, keeps)
        for reason, keeps in zip(
            options.own_reasons(), map(_make, options.filters), strict=True
        )
    }


def filter_code(options: PrepareOptions) -> dict[str, str | None]:
    """Returns the hash of the file that each filter of the user is in."""
    found = [_find(name_and_options(value)[0]) for value in options.filters]
    hashes = map(own_sha256, found)
    return dict(zip(options.own_reasons(), hashes, strict=True))


def _find(name):
    try:
        found = find_own(name, object)
        if found is None:
            raise ValueError(f"no imported file has {name!r}")
    except ValueError as error:
        raise UserError(
            f"`filters`: {error}. Give its file by `import` (--import)."
        ) from error
    return found


def _make(value):
    name, options = name_and_options(value)
    found = _find(name)
    try:
        if not inspect.isclass(found):
            inspect.signature(found).bind("", "", **options)
            return partial(found, **options)
        made = make_own(found, options)
    except (TypeError, ValueError) as error:
        raise UserError(f"`filters`: {name}: {error}") from error
    if not callable(made):
        raise UserError(
            f"`filters`: {name} must be a function of a source and a target, "
            "or a class with such a `__call__`."
        )
    return made


def _keep(keeps, pairs):
    return [bool(keeps(source, target)) for source, target in pairs]
