"""The store of a broker, and the reports of its commits to the parts that wait for them."""

from __future__ import annotations

from broker.config.overlay_config import BrokerConfig
from broker.core.inputs import Persisted
from broker.log import Log
from broker.runtime.client_registry import ClientRegistry
from broker.runtime.core_driver import CoreDriver
from broker.runtime.internal_errors import InternalErrors
from broker.runtime.rights_enforcement import RightsEnforcement
from broker.runtime.store import Store
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


def create_store(
    config: BrokerConfig,
    driver: CoreDriver,
    rights: RightsEnforcement,
    clients: ClientRegistry,
    errors: InternalErrors,
    log: Log,
) -> Store | None:
    """The store of a durable broker, not open yet. None: the broker has no data folder."""
    if config.data_dir is None:
        return None
    commits = CommitHandler(driver, rights, clients, errors)
    table = config.overlay.store
    return Store(config.data_dir, table, commits.persisted, errors.fail, refused=commits.refused, log=log)
