"""The topics through which MQTT clients subscribe at a gateway, and to which the gateway publishes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TopicPrefixes:
    """The topic prefixes to which a gateway appends a subscription's name."""

    subscribe: str
    deliver: str
    error: str

    def subscription_name(self, topic: str) -> str | None:
        """The name in a subscribe topic: None for other topics, empty if the topic has no name."""
        if topic.startswith(self.subscribe) and topic[len(self.subscribe) : len(self.subscribe) + 1] in ("", "/"):
            return topic[len(self.subscribe) + 1 :]
        return None

    @property
    def all(self) -> tuple[str, str, str]:
        return self.subscribe, self.deliver, self.error

    def delivery_topic(self, name: str) -> str:
        return f"{self.deliver}/{name}"

    def error_topic(self, name: str) -> str:
        return f"{self.error}/{name}"
