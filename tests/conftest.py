"""Settings for the whole run: shapes are checked at run time, hypothesis is repeatable, torch uses one thread."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

from hypothesis import settings
from jaxtyping import install_import_hook

settings.register_profile("memcap", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("memcap")

# Shapes written in signatures (jaxtyping) are enforced while the tests run.
_hook = install_import_hook("memcap", "beartype.beartype")
