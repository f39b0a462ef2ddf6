"""The text forms of expressions and publications: SQL, PADRES and JSON. Of `matching` it may import expressions."""

from matching.languages.json import parse_json, to_json, to_json_text
from matching.languages.padres import parse_padres, to_padres
from matching.languages.parser import ParseLimits
from matching.languages.publication import parse_publication, to_publication_text
from matching.languages.sql import parse, parse_sql, parse_trusted
from matching.languages.tokens import parse_number

__all__ = [
    "ParseLimits",
    "parse",
    "parse_json",
    "parse_number",
    "parse_padres",
    "parse_publication",
    "parse_sql",
    "parse_trusted",
    "to_json",
    "to_json_text",
    "to_padres",
    "to_publication_text",
]
