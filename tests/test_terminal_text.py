"""What must be true of names from files of strangers in messages and tables.

* a terminal obeys none of their characters; what is plain text stays
* a cell of a table stays one cell
"""

import logging
import sys
import warnings

from keras_deepnmt.commands.terminal.console import Console, short_log_messages
from keras_deepnmt.commands.terminal.failures import print_error
from keras_deepnmt.terminal_text import escape_controls, table_text

STRANGE = "a\x1b[31mb\x07\x9b1m\r\u202ec\ud800"
SHOWN = r"a\x1b[31mb\x07\x9b1m\r\u202ec\ud800"


def test_control_characters_are_shown_as_escapes():
    assert escape_controls(STRANGE) == SHOWN
    text = "Löwe ﬁ \u200d\u200f \U0001f981\t狮子\n"
    assert escape_controls(text) == text
    everything = "".join(map(chr, range(sys.maxunicode + 1)))
    escaped = escape_controls(everything)
    assert all(c.isprintable() or c in "\t\n" for c in escaped if c < "\xa0")
    escaped.encode()  # no halves of characters


def test_a_cell_stays_a_cell():
    table = [[STRANGE, "b\tc\nd"], ["e", "f"]]
    lines = table_text([table, [["g"]]]).splitlines()
    assert lines == [f"{SHOWN}\tb\\tc\\nd", "e\tf", "", "g"]


def test_no_message_has_control_characters(capsys):
    logger = logging.getLogger("keras_deepnmt.test")
    with short_log_messages():
        logger.warning("%s: wrong", STRANGE)
        sys.stderr.write(warnings.formatwarning(STRANGE, UserWarning, "a", 1))
    Console().print(STRANGE)
    print_error("train", STRANGE)
    lines = capsys.readouterr().err.split("\n")
    assert len(lines) == 5 and all(SHOWN in line for line in lines[:4])
