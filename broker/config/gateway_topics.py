"""What a topic is to a gateway: a device's, a subscription's, or one that the gateway itself publishes to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TopicPrefixes:
    """Topics that stand before a subscription's name."""

    subscribe: str
    deliver: str
    error: str

    def subscription_name(self, topic: str) -> str | None:
        """The subscription that a topic is about; None for other topics, empty where the name is missing."""
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
