"""How `deepnmt translate` goes on after the lines that it finished before."""

import contextlib
import json
import logging
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from jsonargparse import Namespace

from keras_deepnmt.commands.options.compilation import LazilyCompiled
from keras_deepnmt.commands.options.decoding import option_name
from keras_deepnmt.commands.options.document import DocumentInput
from keras_deepnmt.commands.options.given_lines import GivenLines
from keras_deepnmt.commands.options.output_file import is_device, open_output
from keras_deepnmt.commands.options.parser import VerbParser
from keras_deepnmt.commands.options.part_files import PartFiles
from keras_deepnmt.commands.terminal.input_lines import is_text_file
from keras_deepnmt.commands.terminal.line_warnings import LineWarnings
from keras_deepnmt.errors import UserError, refused_values
from keras_deepnmt.files import file_sha256
from keras_deepnmt.json_files import parse_json
from keras_deepnmt.threads import num_cores
from keras_deepnmt.version import __version__
from keras_deepnmt.xla.cache import cache_dir

if TYPE_CHECKING:
    from keras_deepnmt.translator import Hypothesis

_logger = logging.getLogger(__name__)

# Paths, options that change no result, and what is compared in another form.
# `errors` changes no line that is UTF-8.
_NOT_COMPARED = (
    *("runs", "checkpoint", "input", "output", "errors", "quiet", "restart"),
    *("rerank", "rerank_reverse"),
)
# Options for files whose lines belong to those of the input.
_FILES_OF_LINES = ("alignments", "prefixes", "constraints", "max_lengths")
# Seconds after which the batches of a window are kept again, for the case that
# the process is killed.
_KEEP_EVERY = 60.0
# Characters, so that the record stays below what `read_json` takes.
_MOST_KEPT = 50_000_000
_OF_BATCHES = ("batch_size", "batch_tokens")
# Options for other files.
_FILES = ("replace_unknown", "shortlist", "rerank_weights", "terms")


def add_restart(parser: VerbParser) -> None:
    """Adds `--restart`."""
    parser.add_argument(
        "--restart",
        action="store_true",
        help="Begin again, without what an interrupted command finished. "
        "Default: the same command goes on after the lines in OUTPUT.part.",
    )


class Resumption:
    """The files of a translation, and where the command begins in its input.

    If the input and all results are files, the finished lines stay in
    `OUTPUT.part` when the command is stopped, and the same command goes on
    after them. The result is that of a command that was not stopped: lines are
    searched in windows, each of which is finished or goes on after the batches
    that were searched, and what the translators had counted before it is kept.

    `document` is the input, if it is no plain text: lines are its texts then.

    Attributes:
        keeps: whether finished lines stay in `OUTPUT.part`.
        number: how many lines of the input are finished.
        batches: results of the batches of the next lines that are searched, for
            `Translator.translate_nbest`; `None` if nothing is kept.
    """

    def __init__(
        self, options: Namespace, document: DocumentInput | None = None
    ):
        self._options = options
        self._document = document
        self._paths = [options.output]
        if options.alignments is not None:
            self._paths.append(options.alignments)
        self.keeps = (
            not any(
                path in (None, "-") or is_device(path) for path in self._paths
            )
            and options.input not in (None, "-")
            and is_text_file(options.input)
        )
        if options.restart and not self.keeps:
            raise UserError(
                "--restart needs an --input and an --output that are files; "
                "otherwise nothing of an interrupted command is kept."
            )
        self.number = 0
        self.batches: list[list[list[Hypothesis]]] | None = None
        self._parts: PartFiles | None = None
        self._digests: dict[str, Any] = {}
        self._translators: list[LazilyCompiled] = []
        self._state: dict[str, Any] = {}
        self._surroundings: dict[str, Any] = {}
        self._next_lines: dict[str, str] = {}
        self._kept: list[str] = []
        self._kept_at = time.monotonic()

    @contextlib.contextmanager
    def open_files(self) -> Iterator[list[TextIO]]:
        """Opens the files of the results; `skip` adds them to the list.

        The first is that of --output. They get their names at the end.
        """
        if self.keeps:
            finish = self._document and self._document.finish
            with PartFiles(self._paths, finish) as self._parts:
                try:
                    yield self._parts.streams
                except BaseException:
                    with contextlib.suppress(OSError):  # again, of a full disk
                        self._keep_batches()
                    raise
            return
        try:
            if self._document:
                with self._lines_of_document() as lines:
                    yield [lines]
                return
            with contextlib.ExitStack() as stack:
                yield [
                    stack.enter_context(open_output(path))
                    for path in self._paths
                ]
        except KeyboardInterrupt as stop:
            if not str(stop) or self._options.input not in (None, "-"):
                raise
            raise type(stop)(
                f"{stop} Of an input given by --input FILE, what is finished "
                "is kept."
            ) from None

    @contextlib.contextmanager
    def _lines_of_document(self):
        """Opens a temporary file, of which the document is written."""
        with (
            # Before the work, so that a wrong one costs none.
            open_output(self._options.output) as output,
            tempfile.NamedTemporaryFile(
                "w", encoding="utf-8", newline="\n", prefix="deepnmt-lines-"
            ) as lines,
        ):
            yield lines
            lines.flush()
            self._document.write(Path(lines.name), output.buffer)

    def skip(
        self,
        windows: Iterator[list[str]],
        given: GivenLines,
        translators: Sequence[LazilyCompiled],
        warnings: LineWarnings,
    ) -> bool:
        """Takes the lines that an earlier command finished from the windows.

        `given` has the lines of the other files, which are taken too. The
        translators are those that translate and score, that of --output first;
        they go on as those of the earlier command would have, and `warnings`
        get those of the earlier command. Returns whether there is anything left
        to do.
        """
        import keras

        self._translators = list(translators)
        if self._parts is None:
            return True
        translator = translators[0].compiled
        self._surroundings = {
            "the backend and processor": cache_dir(
                "", keras.config.backend()
            ).name,
            "the device": keras.distribution.list_devices()[0],
            "the number of cores": num_cores(),
        }
        state = self._parts.begin(
            _made_of(self._options, translators),
            self._surroundings,
            self._options.restart,
            {
                option_name(name): self._options.get(name)
                for name in (*asdict(translator.options), *_OF_BATCHES)
            },
        )
        is_complete = self._parts.is_complete
        self.batches = []
        if state is None:
            return not is_complete
        # A document is written from the input as it is now, all of which must
        # be that of a complete part.
        while (is_complete or self.number < state["lines"]) and (
            texts := next(windows, None)
        ):
            self.add(texts, given.take(len(texts), translator))
            self.number += len(texts)
        for name, digest in state["sha256"].items():
            if self._hexdigests().get(name) != digest:
                self._refuse_other_errors(name, state)
                raise UserError(
                    f"{name}: the first {state['lines']:,} lines are not "
                    f"those of which {self._options.output}.part was made. Put "
                    "the old file back, or give --restart to begin again."
                )
        for one, its_state in zip(
            translators, state["translators"], strict=True
        ):
            one.state = its_state
        warnings.state = state["warnings"]
        if is_complete:
            return False
        kept = state.get("next", {})
        # Lines are divided into other batches for other cores.
        if kept.get("surroundings") != self._surroundings:
            kept = {"batches": [], "sha256": {}}
        self._kept = list(kept["batches"])
        file = self._parts.record_file
        self.batches = [_read(text, file) for text in self._kept]
        self._next_lines = kept["sha256"]
        lines, more = self.number, _num_lines(self.batches)
        place = f"{self._options.output}.part"
        if more:
            place += f" and {more:,} of the next" if lines else ".json"
        _logger.info(
            "Going on after the %s lines in %s.", f"{lines or more:,}", place
        )
        return True

    def _refuse_other_errors(self, name, state):
        """Names `--errors`, if lines may differ by it alone."""
        errors, before = self._options.errors, state.get("errors", "strict")
        # With `strict` all finished lines are UTF-8.
        if name == "--input" and before not in ("strict", errors):
            raise UserError(
                f"--errors {errors}: {self._options.output}.part was begun "
                f"with --errors {before}, and finished lines that are not "
                f"UTF-8 are others now. Give --errors {before}, or --restart "
                "to begin again."
            )

    def add(
        self, texts: Sequence[str], given: Mapping[str, Sequence[Any]]
    ) -> None:
        """Notes the lines that are read next, of the input and other files."""
        if self._parts is None:
            return
        for name, lines in {"input": texts, **given}.items():
            digest = self._digests.setdefault(option_name(name), sha256())
            digest.update(json.dumps(lines).encode())

    def keep(self, number: int, warned: Mapping[str, Any]) -> None:
        """Keeps the results of the first lines, of which all are finished.

        `warned` is the state of the warnings of these lines.
        """
        if self._parts is None:
            return
        self._state = {
            "lines": number,
            "sha256": self._hexdigests(),
            "errors": self._options.errors,
            "translators": [one.state for one in self._translators],
            "warnings": warned,
        }
        if number != self.number:
            self.number, self.batches, self._kept = number, [], []
            self._parts.keep(number, self._state)

    def begin_next(
        self, texts: Sequence[str], given: Mapping[str, Sequence[Any]]
    ) -> None:
        """Notes the lines to translate now, of the input and other files."""
        if self._parts is None:
            return
        self.add(texts, given)
        digests = self._hexdigests()
        # Lines that were not finished may change.
        if digests != self._next_lines:
            self.batches, self._kept = [], []
        self._next_lines = digests

    def keep_now_and_then(self) -> None:
        """Keeps the batches that are searched, once a minute."""
        if self._parts is None:
            return
        if time.monotonic() - self._kept_at >= _KEEP_EVERY:
            self._keep_batches()

    def _keep_batches(self):
        # A signal may come while a window is kept.
        is_begun = self._state.get("lines") == self._parts.num_lines
        if is_begun and len(self.batches) > len(self._kept):
            for batch in self.batches[len(self._kept) :]:
                text = _written(batch)
                if sum(map(len, [*self._kept, text])) > _MOST_KEPT:
                    break
                self._kept.append(text)
            self._parts.keep_state(
                {
                    **self._state,
                    "next": {
                        "batches": self._kept,
                        "sha256": self._next_lines,
                        "surroundings": self._surroundings,
                    },
                },
                _num_lines(self.batches[: len(self._kept)]),
            )
        self._kept_at = time.monotonic()

    def _hexdigests(self):
        return {
            name: digest.hexdigest() for name, digest in self._digests.items()
        }


def _num_lines(batches):
    return sum(map(len, batches))


def _written(batch: Sequence[Sequence["Hypothesis"]]) -> str:
    """Returns the results of a batch as a text, for `_read`."""
    return json.dumps(
        [[asdict(found) for found in nbest] for nbest in batch],
        ensure_ascii=False,
    )


def _read(text: str, file: Path) -> list[list["Hypothesis"]]:
    from keras_deepnmt.translator import Hypothesis

    def hypothesis(values):
        return Hypothesis(
            **{
                **values,
                "text": str(values["text"]),
                "ids": tuple(map(int, values["ids"])),
                "features": tuple(map(float, values["features"])),
                "given": tuple((int(n), str(p)) for n, p in values["given"]),
            }
        )

    batch = parse_json(text, file)
    with refused_values(f"{file}: damaged"):
        return [list(map(hypothesis, nbest)) for nbest in batch]


def _made_of(options, translators):
    """What the results depend on, by the names of options."""
    translator = translators[0].compiled
    found = {
        option_name(name): value
        for name, value in vars(options).items()
        if name not in _NOT_COMPARED
    }
    for name in _FILES_OF_LINES:
        found[option_name(name)] = options[name] is not None
    for name in _FILES:
        if options[name]:
            found[option_name(name)] = _file_of(options[name])
    for name, value in asdict(translator.options).items():
        found[option_name(name)] = value
    found |= {
        "--batch-size": translator.batch_size,
        "--batch-tokens": translator.batch_tokens,
        "--rerank": len(options.rerank or ()),
        "--rerank-reverse": len(options.rerank_reverse or ()),
        "RUN": _hash_of(translator),
    }
    for number, other in enumerate(translators[1:], start=1):
        found[f"run {number} of those that rerank"] = _hash_of(other.compiled)
    return {"deepnmt": __version__, **found}


def _hash_of(translator):
    """The hash of the weights and tokenizers, and what they are used with."""
    import keras
    import numpy as np

    digest = sha256()
    for variable in translator.model.weights:
        value = keras.ops.convert_to_numpy(variable.value)
        digest.update(np.ascontiguousarray(value).view(np.uint8).data)
    for tokenizer in (translator.source_tokenizer, translator.target_tokenizer):
        digest.update(tokenizer.sha256.encode())
    digest.update(str(translator.max_source_length).encode())
    return {"sha256": digest.hexdigest()}


def _file_of(value):
    """The hash of a file; of several words, such as weights, these."""
    words = value if isinstance(value, list) else [value]
    if len(words) == 1 and Path(words[0]).is_file():
        return {"sha256": file_sha256(words[0])}
    return words
