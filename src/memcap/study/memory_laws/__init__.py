"""Laws of memory size: parameters against items, against pairs, and against depth and bits.

Three figures of ``memcap reproduce``: ``sqrt-law``, ``seq2seq-law`` and ``depth-tradeoff``, all from the checked-in
``configuration.yaml``.
"""
