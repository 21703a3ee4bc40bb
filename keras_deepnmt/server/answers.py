"""Puts the sentences of a request into a queue and waits for the results."""

import asyncio
import contextlib
from collections.abc import Hashable, Sequence
from concurrent.futures import CancelledError
from typing import Any

from starlette.requests import Request

from keras_deepnmt.server.batch_queue import QueueClosedError, QueueFullError
from keras_deepnmt.server.request_errors import RequestError
from keras_deepnmt.server.request_limits import RequestLimits
from keras_deepnmt.server.served_models import Version


async def count_tokens(
    version: Version, texts: Sequence[str], limits: RequestLimits
) -> list[int]:
    """Returns the number of tokens of each sentence.

    Raises a `RequestError` if there are too many sentences, or too many tokens
    in one.
    """
    if len(texts) > limits.max_sentences:
        raise RequestError(
            413,
            f"a request must have at most {limits.max_sentences:,} sentences. "
            f"Received: {len(texts):,}. Send them in several requests.",
        )
    # Not in the thread that answers all other clients.
    lengths = await asyncio.to_thread(version.engine.lengths, texts)
    for number, length in enumerate(lengths, start=1):
        if length > limits.max_tokens:
            raise too_long(number, length, limits)
    return lengths


def too_long(
    number: int, length: int | None, limits: RequestLimits
) -> RequestError:
    """Makes the error for a sentence with too many tokens.

    `number` is which sentence it is, from 1; `length` is its number of tokens,
    if that is known.
    """
    received = "" if length is None else f" Received: {length:,} tokens."
    most = "" if length is None else f" {limits.max_tokens:,}"
    rule = f"at most{most} tokens" if most else "fewer tokens"
    return RequestError(
        400,
        f"sentence {number} must have {rule}.{received} Divide it into "
        "sentences.",
    )


async def results_of(
    request: Request,
    version: Version,
    items: Sequence[Any],
    lengths: Sequence[int],
    kind: Hashable,
    limits: RequestLimits,
) -> list[Any]:
    """Returns the results of a request's sentences.

    `items` are the sentences, in the form of their `kind` (see
    `BatchQueue.submit`), and `lengths` their numbers of tokens. When the client
    goes, its sentences are dropped. Raises a `RequestError` if the queue is
    full, the time is over, the client has gone, or the model fails.
    """
    if not version.is_ready:
        raise RequestError(503, "the model is not ready yet.", 2)
    try:
        job = version.submit(items, lengths, kind, limits.timeout_s)
    except QueueFullError as error:
        raise RequestError(
            429,
            "too many sentences wait for the model. Try again in "
            f"{error.retry_after_s} s.",
            error.retry_after_s,
        ) from error
    except QueueClosedError as error:
        if version.successor is not None:
            return await results_of(
                request, version.successor, items, lengths, kind, limits
            )
        raise RequestError(503, "the server stops.", 2) from error
    found = asyncio.wrap_future(job.future)
    gone = asyncio.ensure_future(_until_gone(request))
    try:
        done, _ = await asyncio.wait(
            {found, gone},
            timeout=limits.timeout_s,
            return_when=asyncio.FIRST_COMPLETED,
        )
        if found not in done:
            version.queue.cancel(job)
            if gone in done:
                raise RequestError(499, "the client has gone.")
            raise TimeoutError
        request.scope["observed"]["queued_s"] = job.queued_s
        return found.result()
    except TimeoutError as error:
        raise RequestError(
            504,
            f"no translation within {limits.timeout_s:g} s. Send fewer "
            "sentences at a time.",
        ) from error
    except (CancelledError, asyncio.CancelledError) as error:
        if job.future.cancelled() or not job.future.done():
            version.queue.cancel(job)
        raise RequestError(503, "the server stops.", 2) from error
    finally:
        gone.cancel()
        found.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await gone


async def _until_gone(request):
    while (await request.receive())["type"] != "http.disconnect":
        pass
