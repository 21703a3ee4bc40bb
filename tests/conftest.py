"""The real corpora, if there are any; some tests run only on request."""

import ctypes
import gc
import os
import platform
import resource
import signal
import sys
from collections import Counter
from pathlib import Path
from zlib import crc32

import pytest

from keras_deepnmt.xla.autoclustering import FLAGS

REPOSITORY = Path(__file__).parents[1]
# Begun first, in this order: a long one at the end would run alone. Whole files
# alone are ordered: tests of one file, and all other files, stay shuffled.
LONG_FILES = (
    # Trains the run of tests/cli/, for which two processes would wait there.
    "tests/system/",
    "tests/conformance/test_second_backend.py",
    "tests/conformance/test_replicas.py",
    "tests/serving/",
    # Long in the default run, too, so that tests/cli/ need not wait for it.
    "tests/rules/test_readme.py",
    "tests/conformance/",
    "tests/cli/",
    "tests/test_notebooks.py",
    "tests/runs/",
    "tests/rules/test_docstrings.py",
)

# Bytes; most files need 1 GB, imports included.
LARGE_PROCESS = 1.5e9

# Where `register_loss` and the like keep what they are given.
REGISTRIES = (
    ("keras_deepnmt.losses", "_LOSSES"),
    ("keras_deepnmt.models.training_step.objective_term", "_TERMS"),
    ("keras_deepnmt.zoo.registry", "_PRESETS"),
)

# Commands under test must not use the cache of whoever runs the tests.
os.environ["DEEPNMT_CACHE"] = "off"

# As the commands do: TensorFlow's log lines differ between processors.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

# Also for the processes that tests start: most of the time of the tests is
# compiling. LLVM's lowest level, one module for each program, and fused
# operations without the passes of MLIR, which take half of the time. Numbers
# differ by rounding only; `system/test_quickstart.py` compiles as users do.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false "
    "--xla_cpu_parallel_codegen_split_count=1",
)

# As the package does on processors that multiply bfloat16: what is tested does
# not depend on the processor.
os.environ.setdefault("TF_XLA_FLAGS", " ".join(FLAGS))

# Modules and graphs are many objects, few of them garbage: Python's 700 takes
# 1.1 s of the 5.7 s of an import of the package, this 0.5 s of 5.1 s.
gc.set_threshold(20_000, 20, 20)

# A shell's background job ignores Ctrl-C, and so would every process that a
# test starts in order to interrupt it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def corpora_dir():
    """The folder of real corpora, or a skip with the reason."""
    folder = Path(
        os.environ.get("DEEPNMT_DATA", REPOSITORY.parent / "shared" / "data")
    )
    if not folder.is_dir():
        pytest.skip(f"No real corpora at {folder}; set DEEPNMT_DATA.")
    return folder


@pytest.fixture
def small_disk():
    """Files can have at most 3,000 bytes, an error like that of a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture(scope="module", autouse=True)
def frozen_garbage():
    """Keeps objects that a file leaves behind out of later collections.

    Graphs and models are millions of objects, and each collection would walk
    through those of all files before. The objects that TensorFlow keeps for
    functions that it ran are freed. A large process gives freed memory back,
    which glibc keeps otherwise: compiling one training step leaves 100 MB.
    """
    yield
    gc.collect()
    if "keras" in sys.modules:
        sys.modules["keras"].utils.clear_session(free_memory=False)
    gc.freeze()
    statistics = Path("/proc/self/statm")
    if platform.libc_ver()[0] == "glibc" and statistics.exists():
        pages = int(statistics.read_text().split()[1])
        if pages * os.sysconf("SC_PAGE_SIZE") > LARGE_PROCESS:
            ctypes.CDLL(None).malloc_trim(0)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish():
    """Keeps what was imported out of all collections."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def own_names():
    """Unregisters the losses, terms and presets that a test registers.

    Those of the package stay, since a module registers them once.
    """
    before = {place: set(_registry(*place)) for place in REGISTRIES}
    yield
    for place, names in before.items():
        registry = _registry(*place)
        for name in set(registry) - names:
            if not registry[name].__module__.startswith("keras_deepnmt."):
                del registry[name]


def _registry(module, name):
    """A registry's dict; an empty one if its module is not imported."""
    return getattr(sys.modules.get(module), name, {})


def pytest_addoption(parser):
    parser.addoption(
        "--cases",
        type=int,
        metavar="N",
        help="run at most N cases of each test; the seed of the order says "
        "which",
    )
    parser.addoption(
        "--thorough-cases",
        type=int,
        metavar="N",
        help="the same for thorough tests alone, but for those marked "
        "thorough(each_commit=True), which all run; the others are skipped, "
        "and counted in the summary",
    )
    parser.addoption(
        "--thorough-share",
        type=float,
        default=1.0,
        metavar="SHARE",
        help="of these cases, run this share; the seed of the order says which",
    )


# Last: of the cases that `-k` leaves.
@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    items.sort(key=_place)
    asked = config.option.markexpr
    for item in items:
        # A test that is slow and thorough runs with the slow ones.
        if item.get_closest_marker("slow"):
            name, runs = "slow", "slow" in asked
        elif item.get_closest_marker("thorough"):
            # `-m "not slow"` asks for all others.
            name, runs = "thorough", bool(asked)
        else:
            continue
        if not runs:
            # Skipped and not deselected, so that the summary of a run counts
            # the tests that it left out, with the option that runs them.
            reason = f"{name.capitalize()}; runs with -m {name}."
            item.add_marker(pytest.mark.skip(reason))
    _skip_thorough_cases(config, items)
    number = config.getoption("--cases", None)
    if number is not None:
        _keep_cases(config, items, number)


def _skip_thorough_cases(config, items):
    number = config.getoption("--thorough-cases", None)
    share = config.getoption("--thorough-share")
    seed = config.getoption("randomly_seed", "")
    numbers = Counter()
    for item in items:
        test = item.nodeid.split("[")[0]
        mark = item.get_closest_marker("thorough")
        if item.get_closest_marker("skip") or mark is None:
            continue
        if mark.kwargs.get("each_commit"):
            continue
        numbers[test] += 1
        if number is not None and numbers[test] > number:
            reason = f"Thorough, beyond {number} cases; runs with -m thorough."
        # Drawn by name, since Python's own hashes differ between processes.
        elif crc32(f"{seed} {item.nodeid}".encode()) >= share * 2**32:
            reason = (
                f"Thorough, not in the share of {share:.2g} that was drawn; "
            )
            reason += "runs with -m thorough."
        else:
            continue
        # Skipped, as above, so that the summary counts it.
        item.add_marker(pytest.mark.skip(reason))


def _keep_cases(config, items, number):
    numbers, kept, others = Counter(), [], []
    for item in items:
        test = item.nodeid.split("[")[0]
        # Skipped ones are none of them.
        if item.get_closest_marker("skip"):
            others.append(item)
            continue
        numbers[test] += 1
        is_kept = numbers[test] <= number
        (kept if is_kept else others).append(item)
    config.hook.pytest_deselected(items=others)
    items[:] = kept


def pytest_terminal_summary(terminalreporter, config):
    """Says what was left out; with `--durations`, also what took longest."""
    left_out = Counter(
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", ())
        if isinstance(report.longrepr, tuple)
    )
    terminalreporter.section(f"left out: {left_out.total()} tests")
    for reason, number in left_out.most_common():
        terminalreporter.line(f"{number} {reason}")
    if not config.option.durations:
        return
    seconds = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds[report.nodeid.split("::")[0]] += report.duration
    total = sum(seconds.values())
    terminalreporter.section(f"slowest files of {total:.0f} s")
    for path, of_file in seconds.most_common(config.option.durations):
        terminalreporter.line(f"{of_file:.0f} s {path}")
    lines = Counter(
        {
            path.relative_to(REPOSITORY): path.read_bytes().count(b"\n")
            for path in (REPOSITORY / "keras_deepnmt").rglob("*.py")
        }
    )
    terminalreporter.section("longest files of the package")
    for path, of_file in lines.most_common(10):
        terminalreporter.line(f"{of_file} lines {path}")


def _place(item):
    """Position of a test's file among the long ones, or behind them."""
    for place, name in enumerate(LONG_FILES):
        if item.nodeid.startswith(name):
            return place
    return len(LONG_FILES)
