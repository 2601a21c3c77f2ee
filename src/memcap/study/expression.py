"""Arithmetic that a grid file may contain, e.g. ``round(2.5 * sqrt(vocabulary))``; read with ``ast``, never ``eval``.

An expression knows numbers, strings, names of settings, comparisons, ``and``/``or``/``not``, ``a if b else c`` and the
functions in ``FUNCTIONS``.  Everything else (attributes, subscripts, calls of anything else, lambdas) is refused when
the file is read.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from memcap.errors import ConfigurationError, nearest

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "round": round,
    "sqrt": math.sqrt,
    "log": math.log,
    "log2": math.log2,
    "log10": math.log10,
    "exp": math.exp,
    "ceil": math.ceil,
    "floor": math.floor,
    "int": int,
    "float": float,
    "abs": abs,
    "min": min,
    "max": max,
}
CONSTANTS: dict[str, float] = {"pi": math.pi, "e": math.e}

_LONGEST = 1000  # characters
_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}

_Closure = Callable[[Mapping[str, Any]], Any]


def _power(base: Any, exponent: Any) -> Any:
    """``base ** exponent`` within numbers that a setting can be: a grid file must not be able to hang the reader."""
    if isinstance(base, int) and isinstance(exponent, int) and exponent > 0 and base.bit_length() * exponent > 1024:
        raise OverflowError("the power has more than 1024 bits")
    result = base**exponent
    if isinstance(result, complex):
        raise ValueError("a power of a negative number is not a real number")
    return result


def _arithmetic(apply: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def checked(left: Any, right: Any) -> Any:
        for value in (left, right):
            if not isinstance(value, int | float):
                raise TypeError(f"arithmetic needs numbers, got {value!r}")
        return apply(left, right)

    return checked


def _connected(closures: list[_Closure], *, stop: bool) -> _Closure:
    """``or`` if the first true part decides (``stop``), ``and`` if the first false one does."""

    def connect(values: Mapping[str, Any]) -> bool:
        for closure in closures:
            if bool(closure(values)) is stop:
                return stop
        return not stop

    return connect


class Expression:
    """A safe expression over named settings.

    Attributes:
        source: as written.
        names: the settings it reads.

    Raises:
        ConfigurationError: if the text is not an expression, or uses anything that is not allowed.

    >>> Expression("round(2.5 * sqrt(vocabulary))").evaluate({"vocabulary": 256})
    40
    >>> sorted(Expression("samples > 100 * dimension").names)
    ['dimension', 'samples']
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self._names: set[str] = set()
        if len(source) > _LONGEST:
            raise ConfigurationError(f"an expression has at most {_LONGEST} characters, got {len(source)}")
        try:
            tree = ast.parse(source.strip(), mode="eval")
            self._closure = self._compile(tree.body)
        except (SyntaxError, RecursionError, MemoryError, ValueError) as error:
            if isinstance(error, ConfigurationError):
                raise
            raise ConfigurationError(f"{source!r} is not an arithmetic expression: {error}") from None
        self.names = frozenset(self._names)

    def __repr__(self) -> str:
        return f"Expression({self.source!r})"

    def evaluate(self, values: Mapping[str, Any]) -> Any:
        """The value of the expression where each name is read from ``values``.

        Raises:
            ConfigurationError: if a name is missing or the arithmetic fails; the message shows the values used.
        """
        try:
            return self._closure(values)
        except KeyError as error:
            name = str(error.args[0])
            raise ConfigurationError(f"{self.source!r} uses {name!r}, unknown here{nearest(name, values)}") from None
        except (ArithmeticError, ValueError, TypeError) as error:
            used = ", ".join(f"{n}={values[n]!r}" for n in sorted(self.names) if n in values)
            raise ConfigurationError(f"{self.source!r} cannot be computed at {used or 'constants'}: {error}") from None

    def parts(self) -> list[Expression]:
        """The expressions that ``and`` connects at the top; all of them are true where the whole is.

        >>> Expression("dimension == 64 and recall > 0.5").parts()
        [Expression('dimension == 64'), Expression('recall > 0.5')]
        """
        match ast.parse(self.source.strip(), mode="eval").body:
            case ast.BoolOp(op=ast.And(), values=parts):
                return [Expression(ast.unparse(part)) for part in parts]
        return [self]

    def _compile(self, node: ast.expr) -> _Closure:
        match node:
            case ast.Constant(value=bool() | int() | float() | str() as constant):
                return lambda values: constant
            case ast.Name(id=name):
                if name in CONSTANTS:
                    number = CONSTANTS[name]
                    return lambda values: values.get(name, number)
                self._names.add(name)
                return lambda values: values[name]
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                return self._binary(_arithmetic(_power), left, right)
            case ast.BinOp(left=left, op=binary, right=right) if type(binary) in _BINARY:
                return self._binary(_arithmetic(_BINARY[type(binary)]), left, right)
            case ast.UnaryOp(op=unary, operand=operand) if type(unary) in _UNARY:
                apply, inner = _UNARY[type(unary)], self._compile(operand)
                return lambda values: apply(inner(values))
            case ast.BoolOp(op=connective, values=parts):
                closures = [self._compile(part) for part in parts]
                return _connected(closures, stop=isinstance(connective, ast.Or))
            case ast.Compare(left=left, ops=ops, comparators=others) if all(type(o) in _COMPARE for o in ops):
                return self._chain([left, *others], [_COMPARE[type(o)] for o in ops])
            case ast.IfExp(test=test, body=body, orelse=orelse):
                condition, yes, no = self._compile(test), self._compile(body), self._compile(orelse)
                return lambda values: yes(values) if condition(values) else no(values)
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS:
                function, inputs = FUNCTIONS[name], [self._compile(a) for a in arguments]
                return lambda values: function(*(i(values) for i in inputs))
            case ast.Call(func=ast.Name(id=name)):
                raise ConfigurationError(
                    f"{self.source!r}: no function {name!r}{nearest(name, FUNCTIONS)}; "
                    f"functions: {', '.join(FUNCTIONS)}"
                )
        raise ConfigurationError(
            f"{self.source!r}: {ast.unparse(node)!r} is not allowed; an expression has numbers, names of settings, "
            f"+ - * / // % **, comparisons, and the functions {', '.join(FUNCTIONS)}"
        )

    def _binary(self, apply: Callable[[Any, Any], Any], left: ast.expr, right: ast.expr) -> _Closure:
        first, second = self._compile(left), self._compile(right)
        return lambda values: apply(first(values), second(values))

    def _chain(self, operands: list[ast.expr], tests: list[Callable[[Any, Any], Any]]) -> _Closure:
        closures = [self._compile(o) for o in operands]
        if len(tests) == 1:
            (left, right), test = closures, tests[0]
            return lambda values: test(left(values), right(values))

        def compare(values: Mapping[str, Any]) -> bool:
            results = [c(values) for c in closures]
            return all(test(a, b) for test, a, b in zip(tests, results, results[1:], strict=False))

        return compare
