"""Whatever enters a connection touches it: deadlines are computed anew for touched connections only.

The sanitizers' build compares all deadlines at each question; this finds a new function before anything calls it.
"""

import re

from railyard.base.paths import ROOT

HEADER = ROOT / "transport" / "include" / "xlink" / "xlink.h"
# What the user keeps there, or in the session, is nothing to the connection; what is freed has no deadline.
NO_TOUCH = {"xl_connection_set_user", "xl_connection_remember", "xl_connection_free"}
MARK = re.compile(r"\bxl_conn_(?:touch\(c\)|enter\(c, now\));")


def declared() -> set[str]:
    """The functions of the public header that can change a connection."""
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.DOTALL)
    return set(re.findall(r"\b(xl_\w+)\((?:[^()]*, *)?xl_connection \*[^()]*\);", text))


def bodies() -> dict[str, str]:
    found = {}
    for file in ROOT.glob("transport/*/*.c"):
        if not file.name.endswith("_test.c"):
            functions = re.findall(r"^\w[^;{}=]*?\b(xl_\w+)\([^;{}]*\) \{\n(.*?)^\}", file.read_text(), re.M | re.S)
            found.update(dict(functions))
    return found


def test_every_public_function_that_can_change_a_connection_touches_it() -> None:
    names, body = declared(), bodies()
    assert {"xl_stream_send", "xl_stream_read", "xl_connection_ping", "xl_connection_close"} | NO_TOUCH <= names
    assert {name for name in names - NO_TOUCH if not MARK.search(body[name])} == set()


def test_whatever_takes_the_time_of_the_call_touches_the_connection() -> None:
    """`now` of a connection is set in one place beside its birth."""
    setters = [name for name, body in bodies().items() if re.search(r"\bc->now = ", body)]
    assert sorted(setters) == ["xl_conn_enter", "xl_conn_new"]
