#!/usr/bin/env bash
# Tests that Schemathesis makes from a fixture fail on pytest 9.2 before their
# first request.
#
# Schemathesis 4.32.5 declares `pytest>=8.4,<10`. With pytest 9.2.0 each test of
# `schemathesis.pytest.from_fixture(...).parametrize()` ends in "AttributeError:
# 'Function' object has no attribute '_nodeid'". With pytest 9.1.1, and nothing
# else changed, the same test passes.
#
# What a project can do: load the document itself, by
# `schemathesis.openapi.from_asgi` or the like, and give `as_strategy()` of each
# operation to Hypothesis, or stay below pytest 9.2.
#
# Seen with Python 3.11, schemathesis 4.32.5, hypothesis 6.170.17, fastapi 0.165.0
# on Linux.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q schemathesis==4.32.5 hypothesis==6.170.17 \
  fastapi==0.165.0 pytest==9.1.1
cat > "$work/test_document.py" <<'PYTHON'
import fastapi
import pytest
import schemathesis

app = fastapi.FastAPI()


@app.get("/number")
def number() -> int:
    return 1


@pytest.fixture
def document():
    return schemathesis.openapi.from_asgi("/openapi.json", app)


schema = schemathesis.pytest.from_fixture("document")


@schema.parametrize()
def test_answers(case):
    case.call_and_validate()
PYTHON
cd "$work"
run() { # run: the output of the test, whatever its exit code
  venv/bin/python -m pytest -q test_document.py 2>&1 || true
}
older=$(run)
venv/bin/pip install -q pytest==9.2.0
newer=$(run)
echo "pytest 9.1.1: $(tail -n 1 <<< "$older")"
echo "pytest 9.2.0: $(grep '^E ' <<< "$newer")"
grep -q '1 passed' <<< "$older"
grep -q "AttributeError: 'Function' object has no attribute '_nodeid'" \
  <<< "$newer"
