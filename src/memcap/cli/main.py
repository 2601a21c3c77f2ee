"""The command line: one verb per file, each imported only when it is called.

Exit codes: 0 done, 1 the run failed or the claim does not hold, 2 a wrong call or wrong input.  A user's mistake gets
one message, never a traceback; ``--debug`` shows the traceback (without locals).
"""

from __future__ import annotations

import sys


def run() -> None:
    """Entry point of the ``memcap`` command."""
    from memcap.cli.app import main

    sys.exit(main(sys.argv[1:]))
