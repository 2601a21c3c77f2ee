"""The early-phase figure: predicted against simulated recall on grids, and critical sizes along lines.

``configuration.yaml`` says what is measured; ``points`` measures one point; ``grids`` and ``lines`` put points
together; ``figure`` is what ``memcap reproduce early-phase`` calls.
"""
