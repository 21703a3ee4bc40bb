"""The figures of a server, in the form that Prometheus reads."""

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_SENTENCES = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics:
    """Counts what a server does; there is one object for each server."""

    def __init__(self):
        self.registry = CollectorRegistry()
        made = {"registry": self.registry, "namespace": "deepnmt"}
        self.requests = Counter(
            "requests",
            "Requests that were answered.",
            ["path", "status"],
            **made,
        )
        self.seconds = Histogram(
            "request_seconds",
            "Seconds until a request was answered.",
            ["path"],
            buckets=_SECONDS,
            **made,
        )
        self.sentences = Counter(
            "sentences", "Sentences that were translated.", ["model"], **made
        )
        self.tokens = Counter(
            "source_tokens",
            "Tokens of sentences that were accepted.",
            ["model"],
            **made,
        )
        self.batch_sentences = Histogram(
            "batch_sentences",
            "Sentences of a batch.",
            ["model"],
            buckets=_SENTENCES,
            **made,
        )
        self.batch_seconds = Histogram(
            "batch_seconds",
            "Seconds in which a batch was computed.",
            ["model"],
            buckets=_SECONDS,
            **made,
        )
        self.queued_seconds = Histogram(
            "queued_seconds",
            "Seconds until a request's first batch.",
            ["model"],
            buckets=_SECONDS,
            **made,
        )
        self.waiting = Gauge(
            "waiting_sentences",
            "Sentences that wait for a model.",
            ["model"],
            **made,
        )
        self.is_ready = Gauge(
            "model_ready",
            "1 for a model that is warm, else 0.",
            ["model"],
            **made,
        )

    def of_model(self, model: str) -> "ModelMetrics":
        """Returns what counts the tokens, sentences and batches of a model."""
        return ModelMetrics(self, model)

    def note_request(
        self,
        path: str,
        status: int | str,
        seconds: float,
        model: str | None = None,
        queued_s: float | None = None,
    ) -> dict[str, float]:
        """Counts a request that was answered.

        It was answered after `seconds`, and its first batch, where it had one,
        began after `queued_s`. Returns these times in milliseconds, for the
        log.
        """
        self.requests.labels(path, str(status)).inc()
        self.seconds.labels(path).observe(seconds)
        times = {"ms": round(1000 * seconds, 1)}
        if queued_s is not None:
            self.queued_seconds.labels(model).observe(queued_s)
            times["queued_ms"] = round(1000 * queued_s, 1)
        return times

    def text(self) -> bytes:
        """All figures, as Prometheus reads them."""
        return generate_latest(self.registry)


class ModelMetrics:
    """Counts the tokens, sentences and batches of one model of the server."""

    def __init__(self, metrics: Metrics, model: str):
        self._metrics, self._model = metrics, model

    def note_accepted(self, num_tokens: int) -> None:
        """Counts the tokens of a request that was accepted."""
        self._metrics.tokens.labels(self._model).inc(num_tokens)

    def note_translated(self, number: int) -> None:
        """Counts sentences that were translated."""
        self._metrics.sentences.labels(self._model).inc(number)

    def note_batch(self, number: int, seconds: float) -> None:
        """Counts a batch."""
        self._metrics.batch_sentences.labels(self._model).observe(number)
        self._metrics.batch_seconds.labels(self._model).observe(seconds)
