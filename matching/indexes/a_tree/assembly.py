"""Converts an expression to its node: it folds constants, flattens nested ANDs and ORs, and removes duplicates.

Each step keeps Kleene's truth value for every publication, including undefined. The grouping of operands is lost,
because it is not part of an expression's identity. `(a AND b) AND c` and `a AND (b AND c)` have one ID and one node.

Departs from [ATREE 4.2.1], which creates a node for every group in the text. The groups with a node would then depend
on the order of insertion. Here a group has a node if it is a subscription or an operand of another connective, and
reorganisation finds that node.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

from matching.expressions.model import And, Expression, Not, Or, Predicate, Xnor, Xor
from matching.indexes.a_tree.node import Kind, Node


class NodeSource(Protocol):
    """Returns the unique node of an expression. Creates it if there is none."""

    def predicate(self, predicate: Predicate) -> Node: ...

    def connective(self, kind: Kind, operands: Sequence[Node]) -> Node: ...


class _Group:
    """The operands of an AND or an OR that may become part of a larger one. Its node is created on first use."""

    __slots__ = ("kind", "node", "parts")

    def __init__(self, kind: Kind, parts: list[Node | _Group]) -> None:
        self.kind = kind
        self.parts = parts
        self.node: Node | None = None


_Form: TypeAlias = Node | _Group | bool

_KINDS: dict[type[Expression], Kind] = {And: Kind.AND, Or: Kind.OR, Not: Kind.NOT, Xor: Kind.XOR, Xnor: Kind.XNOR}


class Assembler:
    def __init__(self, source: NodeSource) -> None:
        self._source = source

    def assemble(self, expression: Expression) -> Node:
        """Returns the node of the expression."""
        forms: dict[int, _Form] = {}
        for part in expression.nodes():
            forms[id(part)] = self._form(part, [forms[id(child)] for child in part.children])
        return self._node(forms[id(expression)])

    def _form(self, part: Expression, children: list[_Form]) -> _Form:
        if isinstance(part, Predicate):
            return self._source.predicate(part)
        kind = _KINDS[type(part)]
        if kind is Kind.NOT:
            return self._negate(children[0])
        if kind is Kind.AND or kind is Kind.OR:
            return self._join(kind, children)
        return self._combine_exclusive(kind, *children)

    def _join(self, kind: Kind, children: Sequence[_Form]) -> _Form:
        deciding = kind is Kind.OR
        if any(child is deciding for child in children):
            return deciding
        parts: list[Node | _Group] = []
        for child in children:
            if isinstance(child, _Group):
                parts.append(child if child.kind is kind else self._node(child))
            elif isinstance(child, Node):
                parts.append(child)
        return _Group(kind, parts) if parts else not deciding

    def _negate(self, child: _Form) -> _Form:
        return not child if isinstance(child, bool) else self._source.connective(Kind.NOT, [self._node(child)])

    def _combine_exclusive(self, kind: Kind, left: _Form, right: _Form) -> _Form:
        is_xor = kind is Kind.XOR
        if isinstance(left, bool):
            left, right = right, left
        if isinstance(right, bool):
            return self._negate(left) if right is is_xor else left
        operands = [self._node(left), self._node(right)]
        if operands[0] is operands[1]:
            # The result is decided if the operand is defined, and undefined otherwise.
            return self._join(Kind.AND if is_xor else Kind.OR, [operands[0], self._negate(operands[0])])
        return self._source.connective(kind, operands)

    def _node(self, form: _Form) -> Node:
        if isinstance(form, Node):
            return form
        if isinstance(form, bool):
            return self._source.connective(Kind.AND if form else Kind.OR, [])
        if form.node is None:
            operands = _operands(form)
            form.node = operands[0] if len(operands) == 1 else self._source.connective(form.kind, operands)
        return form.node


def _operands(group: _Group) -> list[Node]:
    """The distinct operands of the group and of the groups inside it."""
    operands: dict[Node, None] = {}
    seen = {id(group)}
    pending: list[Node | _Group] = [group]
    while pending:
        part = pending.pop()
        if isinstance(part, Node):
            # A group with a single operand became that operand, which may be a node of the same kind.
            operands.update(dict.fromkeys(part.operands if part.kind is group.kind else (part,)))
            continue
        for inner in part.parts:
            if id(inner) not in seen:
                seen.add(id(inner))
                pending.append(inner)
    return list(operands)
