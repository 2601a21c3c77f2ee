"""The lower-bound figure: recall of decoders under the bound of what they see.

``configuration.yaml`` says what is measured; ``points`` measures one decoder at one point; ``figure`` is what
``memcap reproduce lower-bound`` calls.
"""
