"""Speed and size figures.  `python -m benchmarks [NAME ...]` runs all or the named ones; each states what it ran on."""
