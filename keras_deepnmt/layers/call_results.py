"""What the call of a layer returns: its output, and what else was asked for."""


def call_results(output, cache=None, extra=None):
    """Returns the output; if there are a cache or an extra, a tuple of all."""
    given = [part for part in (cache, extra) if part is not None]
    return (output, *given) if given else output
