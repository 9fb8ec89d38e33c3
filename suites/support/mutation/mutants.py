"""Mutants of a module: its source with one small fault each."""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_NOT_RUN = ("annotation", "returns", "decorator_list", "type_params")
"""Fields whose code decides nothing at run time, or is no code of the module's own."""


@dataclass(frozen=True, eq=False)
class Mutant:
    """One fault.

    Attributes
    ----------
    where : str
        Function or class, dotted; empty at the level of the module.
    line : int
        Of the source.
    change : str
        ``old -> new``, as code.
    number : int
        Of this change in this function, from 1 on.
    tree : ast.Module
        The module without the fault.
    old, new : ast.AST
        The node of ``tree`` at fault, and what stands there instead.
    """

    where: str
    line: int
    change: str
    number: int
    tree: ast.Module
    old: ast.AST
    new: ast.AST

    @property
    def source(self) -> str:
        """The module with the fault."""
        return ast.unparse(_with(self.tree, self.old, self.new))

    @property
    def name(self) -> str:
        """What tells the mutant from the others of its module, whatever line it stands on."""
        return f"{self.where}: {self.change}" + (f" ({self.number})" if self.number > 1 else "")


def mutants_of(source: str) -> tuple[Mutant, ...]:
    """Every mutant of a module, in the order of its source."""
    tree = ast.parse(source)
    numbers: Counter[tuple[str, str]] = Counter()
    found = []
    for where, node in _sites(tree, ""):
        for old, new in _replacements(node):
            change = f"{ast.unparse(old)} -> {ast.unparse(new)}"
            numbers[where, change] += 1
            line = getattr(node, "lineno", 0)
            found.append(Mutant(where, line, change, numbers[where, change], tree, old, new))
    return tuple(found)


def _sites(node: ast.AST, where: str) -> Iterator[tuple[str, ast.AST]]:
    """Nodes that may be replaced, with the name of what they stand in."""
    for field, value in ast.iter_fields(node):
        if field in _NOT_RUN:
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or _is_text(child):
                continue
            inner = where
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                inner = f"{where}.{child.name}".lstrip(".")
            yield inner, child
            yield from _sites(child, inner)


def _is_text(node: ast.AST) -> bool:
    """Docstrings, messages and what raises them: their words decide nothing."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return True
    return isinstance(node, ast.JoinedStr | ast.Raise | ast.Import | ast.ImportFrom)


def _replacements(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """What ``node`` may become."""
    if isinstance(node, ast.Compare):
        for place, kind in enumerate(node.ops):
            if type(kind) in _COMPARED:
                changed = copy.deepcopy(node)
                changed.ops[place] = _COMPARED[type(kind)]()
                yield node, changed
    elif isinstance(node, ast.BoolOp):
        yield node, ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    elif isinstance(node, ast.BinOp) and type(node.op) in _COMPUTED and not _joins_words(node):
        yield node, ast.BinOp(node.left, _COMPUTED[type(node.op)](), node.right)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield node, node.operand
    elif isinstance(node, ast.IfExp) and not (_is_words(node.body) or _is_words(node.orelse)):
        yield node, ast.IfExp(node.test, node.orelse, node.body)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield node, ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield node, ast.Constant(node.value + 1)
    elif isinstance(node, ast.If) and not isinstance(node.test, ast.Compare | ast.BoolOp):
        yield node.test, ast.UnaryOp(ast.Not(), node.test)
    elif isinstance(node, ast.AugAssign | ast.Continue | ast.Break) or _is_call(node):
        yield node, ast.Pass()


def _joins_words(node: ast.BinOp) -> bool:
    return _is_words(node.left) or _is_words(node.right)


def _is_words(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _is_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)


def _with(tree: ast.Module, old: ast.AST, new: ast.AST) -> ast.Module:
    """A copy of ``tree`` with ``new`` in the place of ``old``."""

    def of(value: object) -> object:
        if isinstance(value, list):
            return [of(item) for item in value]
        if value is old:
            return new
        if not isinstance(value, ast.AST):
            return value
        return ast.copy_location(type(value)(**{name: of(field) for name, field in ast.iter_fields(value)}), value)

    changed = of(tree)
    assert isinstance(changed, ast.Module)
    return ast.fix_missing_locations(changed)
