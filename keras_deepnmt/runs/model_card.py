"""Writes the model card of a preset folder: what it is and how it was made."""

import json
import math
import re
import shlex
from collections.abc import Mapping
from typing import Any

import yaml

from keras_deepnmt.data.directions import Direction, Directions
from keras_deepnmt.data.known_corpora.finding import find_named_corpus
from keras_deepnmt.data.known_corpora.sources import DemoFile
from keras_deepnmt.errors import UserError
from keras_deepnmt.evaluation.own_metrics import direction
from keras_deepnmt.recipes.schema import Recipe
from keras_deepnmt.runs.changes import CHANGES
from keras_deepnmt.runs.scores_file import with_defaults
from keras_deepnmt.zoo import everything
from keras_deepnmt.zoo.papers import papers
from keras_deepnmt.zoo.registry import get_preset

# The names of the scores in Hugging Face's list of metrics.
_METRICS = {"bleu": "sacrebleu", "chrf": "chrf", "ter": "ter"}
_ASK = "**For the author of this card to fill in:**"
_LICENSE_LINE = (
    "# license: choose one that the terms of the training data allow, such as "
    "apache-2.0 or cc-by-nc-sa-4.0\n"
)


def model_card(
    recipe: Recipe,
    summary: Mapping[str, Any],
    model_class: str,
    folder: str,
    max_source_length: int | None = None,
) -> str:
    """Returns the model card of a run's model in Markdown.

    It begins with the metadata that Hugging Face defines, in YAML. What the
    run does not record is left to the author, and the card says so: the
    license, who uses the model and what for, and harm that it may do.

    `recipe` has the data's entries in `resolved`; `summary` has the entries of
    `run.json` about the model, and its `scores`; `folder` is the name of the
    preset folder. `max_source_length` counts the tokens of the longest source
    that the model reads, the end included; `None` is no limit.
    """
    described = _papers(recipe.model.preset)
    directions = _directions(recipe, summary)
    sections = [
        _front_matter(recipe, summary, described, directions),
        _introduction(recipe, summary, described, directions),
        _use(directions, model_class, folder),
        _intended_use(recipe, directions),
        _limits(recipe, summary, max_source_length),
        _scores(summary),
        _examples(summary),
        _training(recipe, summary),
        _data(recipe),
        _license(),
        _citation(described),
    ]
    return "\n".join(section for section in sections if section)


def _papers(preset):
    """Returns the papers of a preset; one of the user may have none."""
    try:
        name = getattr(get_preset(preset), "paper", None)
    except ValueError:  # a preset that is no longer registered
        return []
    names = everything.NAMES_OF_PAPERS if name == "all papers" else (name,)
    return [paper for paper in papers() if paper.name in names]


def _directions(recipe, summary):
    """Returns the directions of the training text, at least one."""
    found = [Direction(**one) for one in summary.get("directions", ())]
    # Runs of earlier versions record none.
    return found or [Direction(*recipe.data.languages, None)]


def _described_directions(directions):
    """Names the languages and the tag of each direction, after a space."""
    described = []
    for source, target, tag in directions:
        text = f" from `{source}` to `{target}`" if source and target else ""
        text += f" with the tag `{tag}`" if tag else ""
        described += [text] if text else []
    return ",".join(described)


def _example_direction(directions):
    """Chooses a direction for examples; returns it with what it is chosen by.

    That is the name of an argument of `Translator.load` and its value, or
    `None` if it needs none. A direction without a tag comes first: the others
    may be those of tagged back-translations.
    """
    chosen = min(directions, key=lambda one: one.tag is not None)
    known = Directions(one._asdict() for one in directions)
    if chosen.tag is None and len(known.targets) < 2:
        return chosen, None
    try:
        known.tag_of(chosen.target)
    except UserError:  # a language with several tags, or one that is not known
        return chosen, chosen.tag and ("tag", chosen.tag)
    return chosen, ("target_language", chosen.target)


def _front_matter(recipe, summary, described, directions):
    tags = ["translation", "machine-translation", "keras", "keras-hub"]
    tags.append(recipe.model.preset)
    tags += [
        f"arxiv:{paper.address.rpartition('/')[2]}"
        for paper in described
        if "arxiv.org" in paper.address
    ]
    languages = [name for one in directions for name in one[:2] if name]
    content = {
        "library_name": "keras_deepnmt",
        "pipeline_tag": "translation",
        "language": list(dict.fromkeys(languages)),
        "tags": tags,
        "metrics": sorted(
            {_METRICS.get(m, m) for r in summary["scores"] for m in r["scores"]}
        ),
        "model-index": [
            {
                "name": summary.get("name", recipe.name),
                "results": [_result(row) for row in summary["scores"]],
            }
        ],
    }
    if not summary["scores"]:
        # Hugging Face refuses an index without results.
        del content["model-index"]
    content = {key: value for key, value in content.items() if value}
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
    return f"---\n{_LICENSE_LINE}{text}---\n"


def _result(row):
    name = row["test_set"]["name"]
    return {
        "task": {"type": "translation"},
        "dataset": {"name": name, "type": name},
        "metrics": [
            {
                "type": _METRICS.get(metric, metric),
                "name": score["signature"],
                "value": round(score["value"], 2),
            }
            for metric, score in row["scores"].items()
        ],
    }


def _introduction(recipe, summary, described, directions):
    of_papers = ", ".join(
        f"[{paper.name}: {paper.title}]({paper.address})" for paper in described
    )
    after = f", after {of_papers}" if described else ""
    return (
        f"# {summary['name']}\n\nTranslates"
        f"{_described_directions(directions)}. The model is the preset "
        f"`{recipe.model.preset}` of keras_deepnmt{after}, with "
        f"{summary['parameters']:,} parameters.\n"
    )


def _use(directions, model_class, folder):
    direction, choice = _example_direction(directions)
    language = direction.source
    text = f"A sentence in {language}." if language else "A sentence."
    argument = option = ""
    if choice is not None:
        name, value = choice
        argument = f", {name}={json.dumps(value, ensure_ascii=False)}"
        option = f" --{name.replace('_', '-')} {shlex.quote(value)}"
    return f"""\
## Use

The folder holds a Keras preset (`config.json`, `model.weights.h5`), the
tokenizers and the search options. With keras_deepnmt installed:

```python
from keras_deepnmt import Translator

translator = Translator.load("{folder}"{argument})
print(translator.translate(["{text}"]))
```

The model alone, without tokenizers and search:

```python
import keras_deepnmt

model = keras_deepnmt.models.{model_class}.from_preset("{folder}")
```

On the command line, to translate, and to fine-tune the model on other text:

```bash
deepnmt translate {folder}{option} < source.txt > translations.txt
deepnmt train my.yaml --from-preset {folder}
```
"""


def _intended_use(recipe, directions):
    direction = _described_directions(directions)
    direction = f",{direction}" if direction else ""
    names = dict.fromkeys(
        f"`{corpus['name']}`"
        for corpus in recipe.resolved.get("corpora", [])
        if corpus["split"] == "train"
    )
    trained = f" It was trained on {', '.join(names)}." if names else ""
    return f"""\
## Intended use

Translation of text, a sentence at a time{direction}.{trained} How well it
translates text of other kinds is not known beyond the scores below.

{_ASK} who is to use the model and what for, and what it is not meant for.
"""


def _limits(recipe, summary, max_source_length):
    data = recipe.data
    limits = []
    if max_source_length is not None:
        limits.append(
            f"A source is read up to {max_source_length:,} tokens, its end "
            "included; the rest of a longer one is not translated."
        )
    limits.append(
        f"Sentences of more than {data.max_length:,} words or "
        f"{data.max_tokens:,} tokens were left out of the training text."
    )
    if not data.byte_fallback:
        limits.append(
            "Characters that the tokenizers lack are read and written as "
            "unknown tokens."
        )
    seed = summary.get("seed")
    if seed is not None:
        limits.append(
            f"The scores are those of one training, with the seed {seed}. "
            "Their intervals cover the choice of test sentences, not that of "
            "the seed."
        )
    lines = "\n".join(f"- {limit}" for limit in limits)
    return f"""\
## Limits

{lines}

{_ASK} what is known of errors, of bias in the training data, and of harm that
wrong translations may do. None of this was examined by keras_deepnmt.
"""


def _examples(summary):
    rows = [row for row in summary["scores"] if row.get("examples")]
    if not rows:
        return (
            "## Examples\n\nNone were recorded. `deepnmt evaluate RUN` before "
            "the export adds some.\n"
        )
    row = next((r for r in rows if r["test_set"]["name"] == "test"), rows[0])
    table = _table(
        ("source", "translation", "reference"),
        [
            [
                _as_written(example[side])
                for side in ("source", "translation", "reference")
            ]
            for example in row["examples"]
        ],
    )
    return (
        f"## Examples\n\nSentences of {row['test_set']['name']}, spread over "
        f"the text and not chosen by their quality.\n\n{table}"
    )


def _as_written(text):
    """A text in which Markdown finds no marks."""
    return re.sub(r"([\\`*_{}\[\]<>#&~])", r"\\\1", text)


def _scores(summary):
    rows = [
        (
            f"{row['test_set']['name']} ({row['test_set']['sentences']:,} "
            "sentences)",
            _metric(metric),
            _value(score),
            f"`{score['signature']}`",
            _search(with_defaults(row["decoding"])),
        )
        for row in summary["scores"]
        for metric, score in row["scores"].items()
    ] + [
        (
            "validation set",
            _metric(metric),
            _value(score),
            f"`{score['signature']}`",
            "",
        )
        for metric, score in summary.get("valid", {}).items()
    ]
    if not rows:
        return "## Scores\n\nThis model has not been scored.\n"
    head = ("text", "metric", "score", "sacreBLEU signature", "search")
    return f"## Scores\n\n{_table(head, rows)}"


def _metric(name):
    is_lower = direction(name) == "lower"
    return f"{name} (lower is better)" if is_lower else name


def _value(score):
    interval = score.get("interval")
    half_width = "" if interval is None else f" ± {interval:.2f}"
    return f"{score['value']:.2f}{half_width}"


def _search(decoding):
    beams = decoding["num_beams"]
    if beams == 1:
        return "greedy"
    return f"{beams} beams, length penalty {decoding['length_penalty']}"


def _training(recipe, summary):
    speed = summary.get("training", {})
    steps = summary.get("averaged_steps", [])
    weights = "one checkpoint" if len(steps) == 1 else "the mean of checkpoints"
    used = f"{weights} ({', '.join(map(str, steps))})"
    started = recipe.resolved.get("initialize_from", {}).get("run")
    changes = recipe.resolved.get(CHANGES, [])
    rows = [
        ("recipe", f"`recipe.yaml`, named `{recipe.name}`"),
        ("updates", _number(summary.get("steps"))),
        ("started from", f"the weights of `{started}`" if started else None),
        *(
            (f"changed after update {change['update']:,}", _changed(change))
            for change in changes
        ),
        ("weights", used if steps else None),
        ("target tokens", _number(speed.get("target_tokens"))),
        ("minutes", _minutes(speed.get("seconds"))),
        ("device", _device(summary.get("device"))),
        ("seed", summary.get("seed")),
        ("commit", f"`{summary.get('commit')}`"),
        (
            "versions",
            ", ".join(
                f"{name} {version}"
                for name, version in summary.get("versions", {}).items()
            ),
        ),
    ]
    rows = [(name, value) for name, value in rows if value is not None]
    but = " and the changes above" if changes else ""
    return (
        f"## Training\n\n{_table(('', ''), rows)}\nTo repeat it: "
        "`deepnmt train recipe.yaml`, with the files that the recipe names"
        f"{but}.\n"
    )


def _changed(change):
    changed = [
        f"`{key}` from {json.dumps(values['before'], ensure_ascii=False)} to "
        f"{json.dumps(values['after'], ensure_ascii=False)}"
        for key, values in change["keys"].items()
    ]
    return ", ".join(changed or ["the number of devices"])


def _number(value):
    return None if value is None else f"{value:,}"


def _minutes(seconds):
    if seconds is None or not math.isfinite(seconds):
        return None
    return f"{seconds / 60:,.1f}"


def _device(device):
    if device is None:
        return None
    processor = f"{device.get('processor')}, {device.get('cores')} cores"
    accelerators = ", ".join(map(str, device.get("accelerators") or []))
    return f"{accelerators or processor} ({device.get('backend')})"


def _data(recipe):
    corpora = recipe.resolved.get("corpora", [])
    rows = [
        (
            corpus["split"],
            corpus["name"],
            f"{corpus['pairs']:,}",
            *(_hash(corpus, side) for side in ("source", "target")),
            terms_of_use(corpus["name"]),
        )
        for corpus in corpora
    ]
    head = ("split", "corpus", "sentence pairs", "SHA-256 of the source")
    head += ("SHA-256 of the target", "terms of use")
    return f"## Data\n\n{_table(head, rows)}"


def _hash(corpus, side):
    found = corpus.get("sha256", {}).get(side)
    return f"`{found}`" if found else "not recorded"


def terms_of_use(name):
    """Tells where the terms of use of a corpus are found."""
    try:
        splits = find_named_corpus(name).splits
    except UserError:
        return "own text: those of its owner"
    file = next(iter(splits.values()))[0]
    if isinstance(file, DemoFile):
        return "written by keras_deepnmt, Apache-2.0"
    addresses = [part.archive.address for part in getattr(file, "members", ())]
    addresses = addresses or [getattr(file, "address", None)]
    folders = dict.fromkeys(a.rpartition("/")[0] for a in addresses if a)
    return ", ".join(["those of its publisher", *folders])


def _license():
    return """\
## License

The license of these weights is for the publisher to choose: fill in `license`
at the top. It depends on the terms of the training data.
"""


def _citation(described):
    if not described:
        return ""
    lines = "\n".join(
        f"- {paper.name}. [{paper.title}]({paper.address})."
        for paper in described
    )
    return f"## Citation\n\n{lines}\n"


def _table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "".join(
        f"| {' | '.join(str(c).replace('|', chr(92) + '|') for c in line)} |\n"
        for line in lines
    )
