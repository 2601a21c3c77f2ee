"""Write the text of Python's own manual (module ``pydoc_data.topics``, part of every Python) to a file.

Usage: python examples/manual_text.py build/manual.txt
"""

import sys
from pathlib import Path
from pydoc_data import topics


def main() -> None:
    path = Path(sys.argv[1])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(topics.topics.values()), encoding="utf-8")


if __name__ == "__main__":
    main()
