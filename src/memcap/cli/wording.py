"""Messages of the Python interface in the words of the command line: ``test_samples`` becomes ``--test-samples``.

A message is written once, for Python; what it calls an argument is here an option of the verb that was called.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import click

_VALUE = r"(?:=(?P<quote>['\"]?)(?P<value>\.\.\.|-?[\w+]+(?:[.-]\w+)*)(?P=quote))?"


def in_options(message: str, parameters: Sequence[click.Parameter]) -> str:
    """``message`` with names of arguments as options: ``weights='exact'`` is ``--weights exact``, ``ordered=False`` the
    flag ``--multiset``.  Single words without a value stay, they are English; so does what stands in quotes.

    >>> options = [click.Option(["--reject-bits"]), click.Option(["--weights"])]
    >>> in_options("reject_bits needs weights='exact'; bits stay", options)
    '--reject-bits needs --weights exact; bits stay'
    """
    named: dict[str, click.Option] = {}
    for option in parameters:
        if isinstance(option, click.Option):
            long = [o.lstrip("-").replace("-", "_") for o in option.opts if o.startswith("--")]
            named |= dict.fromkeys([option.name or "", *long], option)
    if not named:
        return message
    names = "|".join(sorted(map(re.escape, named), key=len, reverse=True))
    word = re.compile(rf"(?<![\w'\"./=-])(?P<name>{names}){_VALUE}(?![\w'\"/=])")
    return word.sub(lambda found: _option(found, named[found["name"]]), message)


def _option(found: re.Match[str], option: click.Option) -> str:
    value = found["value"]
    if value is None and "_" not in found["name"]:
        return found[0]
    flag = next(o for o in option.opts if o.startswith("--"))
    if value is None:
        return flag
    if not option.is_flag:
        return f"{flag} {option.metavar or 'VALUE' if value == '...' else value}"
    if value == "True":
        return flag
    opposite = next((o for o in option.secondary_opts if o.startswith("--")), f"no {flag}")
    return opposite if value == "False" else found[0]
