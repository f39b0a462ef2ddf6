"""Reports the store's commits to the parts that wait for them."""

from __future__ import annotations

from broker.core.inputs import Persisted
from broker.runtime.client_registry import ClientRegistry
from broker.runtime.core_driver import CoreDriver
from broker.runtime.internal_errors import InternalErrors
from broker.runtime.rights_enforcement import RightsEnforcement
from broker.runtime.store_records import Key, RecordError


class CommitHandler:
    def __init__(
        self, driver: CoreDriver, rights: RightsEnforcement, clients: ClientRegistry, errors: InternalErrors
    ) -> None:
        self._driver = driver
        self._rights = rights
        self._clients = clients
        self._errors = errors

    def persisted(self, keys: list[Key]) -> None:
        """Reports each committed record to the core. An error over one record does not affect the others."""
        for key in keys:
            try:
                self._driver.handle(Persisted(key))
                self._rights.check_stored(key)
            except Exception as error:
                self._errors.report("stored record not taken", error, key="/".join(key))
        self._clients.submit_waiting()

    def refused(self, error: RecordError) -> None:
        """Reports a record that cannot be encoded."""
        self._errors.report("record not written", error)
