"""Settings for the whole run: shapes are checked at run time, hypothesis is repeatable, torch uses one thread."""

import os
import signal
import threading

os.environ.setdefault("OMP_NUM_THREADS", "1")

# A shell starts background jobs with Ctrl-C ignored, and processes inherit that: tests of interruption need it back.
if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

from hypothesis import settings
from jaxtyping import install_import_hook

settings.register_profile("memcap", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("memcap")

# Shapes written in signatures (jaxtyping) are enforced while the tests run.
_hook = install_import_hook("memcap", "beartype.beartype")
