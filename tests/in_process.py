"""`railyard` within the process of the tests: a start of Python and its imports takes longer than most commands."""

import io
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from unittest import mock

from conftest import Done
from railyard.cli.main import main


def railyard(*arguments: str, **environment: str) -> Done:
    """The command line with these arguments and changes of the environment. What is not a user's error is raised."""
    code: object = 0
    written = io.BytesIO()
    out = io.TextIOWrapper(written, encoding="utf-8", write_through=True)  # some commands write bytes
    with (
        mock.patch.object(sys, "argv", ["railyard", *arguments]),
        mock.patch.dict(os.environ, environment),
        redirect_stdout(out),
        redirect_stderr(io.StringIO()) as err,
    ):
        try:
            main()
        except SystemExit as ended:
            code = ended.code or 0
    return Done(code if isinstance(code, int) else 1, written.getvalue().decode(), err.getvalue())
