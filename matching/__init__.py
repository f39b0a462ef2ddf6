"""Matching: finds the Boolean expressions that a publication satisfies. It imports no other package of the project, and
has no clock, no network and no thread.

    import matching
    from matching import attr

    index = matching.create("auto")
    index.add(1, "symbol = 'IBM' AND price BETWEEN 80 AND 120")
    index.add(2, (attr("price") > 100) | (attr("volume") >= 10_000))
    index.match({"symbol": "IBM", "price": 92.5}).ids        # [1]
"""

from matching.errors import MatchingError, ParseError
from matching.expressions.builder import Attribute, attr
from matching.expressions.explain import Explanation, explain
from matching.expressions.model import FALSE, TRUE, And, Expression, Not, Operator, Or, Predicate, Xnor, Xor
from matching.expressions.printing import to_text
from matching.expressions.values import Publication, TypeClass, Value, check_publication
from matching.languages.json import parse_json, to_json, to_json_text
from matching.languages.padres import parse_padres, to_padres
from matching.languages.parser import ParseLimits
from matching.languages.publication import parse_publication, to_publication_text
from matching.languages.sql import parse, parse_sql
from matching.matcher import DestinationReport, Matcher, MatchReport, Structure
from matching.registry import create, info, names

__all__ = [
    "FALSE",
    "TRUE",
    "And",
    "Attribute",
    "DestinationReport",
    "Explanation",
    "Expression",
    "MatchReport",
    "Matcher",
    "MatchingError",
    "Not",
    "Operator",
    "Or",
    "ParseError",
    "ParseLimits",
    "Predicate",
    "Publication",
    "Structure",
    "TypeClass",
    "Value",
    "Xnor",
    "Xor",
    "attr",
    "check_publication",
    "create",
    "explain",
    "info",
    "names",
    "parse",
    "parse_json",
    "parse_padres",
    "parse_publication",
    "parse_sql",
    "to_json",
    "to_json_text",
    "to_padres",
    "to_publication_text",
    "to_text",
]
