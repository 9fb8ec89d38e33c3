"""Arithmetic expressions of arrays and scalars: read from text, typed, turned into C++ or evaluated with NumPy.

The language is Python's own arithmetic: names, numbers, + - * /, unary minus, and the functions of ``FUNCTIONS``.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from burstproof.errors import ArrayError
from burstproof.tensor.array.protocol import Array
from burstproof.tensor.ops import nn_reference

_OPERATORS: dict[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.Div: ("/", operator.truediv),
}


def _relu(x: Array) -> Array:
    return np.where(x < 0, np.zeros((), x.dtype), x)


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


@dataclass(frozen=True)
class Function:
    """A function of the language: its name in C++, its NumPy form, whether it takes complex numbers."""

    spelled: str
    apply: Callable[[Array], Array]
    takes_complex: bool
    real_result: bool = False


FUNCTIONS: dict[str, Function] = {
    "abs": Function("absolute", np.abs, takes_complex=True, real_result=True),
    "exp": Function("exponential", np.exp, takes_complex=True),
    "relu": Function("relu", _relu, takes_complex=False),
    "sigmoid": Function("sigmoid", _sigmoid, takes_complex=False),
    "gelu": Function("gelu", lambda x: nn_reference.gelu(x, False), takes_complex=False),
    "gelu_tanh": Function("gelu_tanh", lambda x: nn_reference.gelu(x, True), takes_complex=False),
}
"""Functions of one argument; ``gelu`` is the form with the error function."""


@dataclass(frozen=True)
class Expression:
    """A parsed expression.

    Attributes
    ----------
    text : str
        As given.
    names : tuple of str
        Operands in order of appearance.
    tree : ast.expr
        Checked: nothing but the language's constructs.
    """

    text: str
    names: tuple[str, ...]
    tree: ast.expr

    def apply(self, operands: Mapping[str, Any]) -> Any:
        """Value by NumPy; ``operands`` are arrays of one computing dtype and scalars of that type."""
        dtype = next(value.dtype for value in operands.values() if isinstance(value, np.ndarray))
        return _apply(self.tree, operands, np.float64 if dtype.kind == "c" else dtype.type)

    def cpp(self, inputs: Mapping[str, str], complex_elements: bool) -> tuple[str, bool]:
        """C++ text, and whether its value is complex; ``inputs`` maps operands to C++ names.

        Raises
        ------
        ArrayError
            A function that complex numbers do not have.
        """
        return _cpp(self.tree, inputs, complex_elements)


@lru_cache(maxsize=512)
def parse(text: str) -> Expression:
    """An expression from its text.

    Raises
    ------
    ArrayError
        Text that is no arithmetic expression, or one that uses something else of Python.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise ArrayError(f"not an expression: {getattr(error, 'msg', error)}", where="expression", got=text) from error
    names: dict[str, None] = {}
    _collect(tree, text, names)
    if not names:
        raise ArrayError("the expression names no array", where="expression", got=text)
    return Expression(text, tuple(names), tree)


def _collect(node: ast.expr, text: str, names: dict[str, None]) -> None:
    match node:
        case ast.Name(id=name) if name not in FUNCTIONS:
            names[name] = None
        case ast.Constant(value=int() | float()) if not isinstance(node.value, bool):
            return
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            _collect(left, text, names)
            _collect(right, text, names)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            _collect(operand, text, names)
        case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name in FUNCTIONS:
            _collect(argument, text, names)
        case _:
            raise ArrayError(
                "the language has no such construct",
                where=f"expression {text!r}, column {node.col_offset}",
                got=ast.unparse(node),
                allowed=f"names, numbers, + - * /, and {', '.join(FUNCTIONS)} of one argument",
            )


def _apply(node: ast.expr, operands: Mapping[str, Any], kind: Any) -> Any:
    match node:
        case ast.Name(id=name):
            return operands[name]
        case ast.Constant(value=value):
            return kind(value)
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATORS[type(op)][1](_apply(left, operands, kind), _apply(right, operands, kind))
        case ast.UnaryOp(operand=operand):
            return -_apply(operand, operands, kind)
        case ast.Call(func=ast.Name(id=name), args=[argument]):
            return FUNCTIONS[name].apply(np.asarray(_apply(argument, operands, kind)))
    raise AssertionError(f"unchecked construct {ast.dump(node)}")


def _cpp(node: ast.expr, inputs: Mapping[str, str], complex_elements: bool) -> tuple[str, bool]:
    match node:
        case ast.Name(id=name):
            return inputs[name], complex_elements
        case ast.Constant(value=int() | float() as value):
            return f"static_cast<{'double' if complex_elements else 'number'}>({float(value)!r})", False
        case ast.UnaryOp(operand=operand):
            inner, is_complex = _cpp(operand, inputs, complex_elements)
            return f"(-{inner})", is_complex
        case ast.BinOp(left=left, op=op, right=right):
            first, first_complex = _cpp(left, inputs, complex_elements)
            second, second_complex = _cpp(right, inputs, complex_elements)
            if first_complex != second_complex:
                first, second = f"lifted({first})", f"lifted({second})"
            return f"({first} {_OPERATORS[type(op)][0]} {second})", first_complex or second_complex
        case ast.Call(func=ast.Name(id=name), args=[argument]):
            inner, is_complex = _cpp(argument, inputs, complex_elements)
            return _call(name, inner, is_complex)
    raise AssertionError(f"unchecked construct {ast.dump(node)}")


def _call(name: str, inner: str, is_complex: bool) -> tuple[str, bool]:
    function = FUNCTIONS[name]
    if is_complex and not function.takes_complex:
        raise ArrayError("the function has no meaning for complex numbers", where=f"function {name}", got="complex128")
    return f"{function.spelled}({inner})", is_complex and not function.real_result
