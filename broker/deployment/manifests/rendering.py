"""Writes deployment files: systemd units and scripts from the templates of this package, and YAML."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from shlex import quote
from typing import TypeAlias

from broker.deployment.manifests.plan import DeployError

try:
    import jinja2
    import yaml
except ImportError as error:
    raise DeployError(f"deployment files need {error.name}: pip install 'mercast[deploy]'") from error

Yaml: TypeAlias = "Mapping[str, Yaml] | Sequence[Yaml] | str | int | float | bool"

_LINE_ENDS_OF_YAML_1_1 = ("\x85", "\u2028", "\u2029")

_TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("broker.deployment.manifests"),
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    keep_trailing_newline=True,
)
_TEMPLATES.filters["quote"] = quote


def render(template: str, **values: object) -> str:
    """Returns the text of `templates/TEMPLATE.j2` with the values."""
    return _TEMPLATES.get_template(f"{template}.j2").render(values)


def to_yaml(*documents: Yaml) -> str:
    """Returns the documents in block form, with their keys in order."""
    return yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=float("inf"))


class _Dumper(yaml.SafeDumper):
    """Quotes strings that some YAML reader reads as another type. Writes text of several lines as a literal block."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indents the items of a list also within a mapping."""
        super().increase_indent(flow, indentless=False)

    def ignore_aliases(self, data: object) -> bool:
        """Whether an object that occurs twice is written twice. Always true, because readers need no anchors then."""
        return True

    def represent_text(self, text: str) -> yaml.ScalarNode:
        style = None
        if any(each in text for each in _LINE_ENDS_OF_YAML_1_1):
            # They end no line in YAML 1.2. PyYAML escapes them only in double quotes.
            style = '"'
        elif "\n" in text:
            style = "|"
        return self.represent_scalar("tag:yaml.org,2002:str", text, style)


_Dumper.add_representer(str, _Dumper.represent_text)

# PyYAML quotes the strings that it would read as another type itself. Readers in Go, as in Kubernetes and Docker, read
# further strings as booleans and numbers: y, 1e3, 0o17. With these resolvers PyYAML quotes them too.
_Dumper.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"[yYnN]$"), list("yYnN"))
_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"[-+.]*[0-9]"), list("-+.0123456789"))
