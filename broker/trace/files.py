"""Traces as Parquet files: `trace/<table>/part-00000.parquet` in the directory of a run.

A file has a hidden name until it is complete, so that a reader sees only whole files: Spark ignores names with a
leading dot. A run that fails leaves no trace, instead of an incomplete one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, overload

from broker.trace.schema import TABLE_OF, TABLES, Columns, Digest, Row, Table, TraceError, TraceWriteError, batches

if TYPE_CHECKING:
    import pyarrow

PART = "part-00000.parquet"
BATCH_ROWS = 50_000

RowT = TypeVar("RowT", bound=Row)


class TraceWriter:
    """Collects rows in memory and writes them to the files in batches. `batch_rows` limits the buffer of each table.

    As a context manager it completes the files at the end. If the run ends in an exception it removes them.
    """

    def __init__(self, directory: Path, run: str, batch_rows: int = BATCH_ROWS) -> None:
        self._digest = Digest()
        self._batches = batches(batch_rows)
        self._files: dict[type[Row], _TableFile] = {}
        self._is_open = True
        _refuse_to_overwrite(directory)
        try:
            for row_type, table in TABLE_OF.items():
                self._files[row_type] = _TableFile(_folder(directory, table), table, run)
        except TraceError:
            self.discard()
            raise

    def record(self, row: Row) -> None:
        """Adds a row to its table. Writes the table's buffer if it is full."""
        try:
            batch = self._batches[type(row)]
        except KeyError:
            raise self._refused(row) from None
        if batch.add(row):
            self._write(type(row))

    @property
    def digest(self) -> Digest:
        """The digest of all rows recorded so far. Rows in memory are written first."""
        self._write_all()
        return self._digest

    @property
    def buffered_rows(self) -> int:
        """The number of rows that are not written yet."""
        return sum(map(len, self._batches.values()))

    def roll(self) -> None:
        """Makes the rows recorded so far visible to readers. Files with rows get their final names, and new files
        continue the tables."""
        self._write_all()
        for row_type, file in list(self._files.items()):
            if file.has_rows:
                file.complete()
                file.reveal()
                # Readers may use the file now, so it stays even if no successor can be created.
                del self._files[row_type]
                self._files[row_type] = file.successor()

    def close(self) -> None:
        """Completes the files and gives them their final names: all of them, or none if that fails."""
        if not self._is_open:
            return
        try:
            self._write_all()
            for file in self._files.values():
                file.complete()
            for file in self._files.values():
                file.reveal()
        except BaseException:
            self.discard()
            raise
        self._end()

    def discard(self) -> None:
        """Removes the files, except those that `roll` made visible. Does nothing after `close`."""
        if self._is_open:
            self._end()
            for file in self._files.values():
                file.remove()

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def _end(self) -> None:
        self._is_open = False
        self._batches = {}

    def _write_all(self) -> None:
        for row_type, batch in self._batches.items():
            if batch:
                self._write(row_type)

    def _write(self, row_type: type[Row]) -> None:
        table = TABLE_OF[row_type]
        columns = self._batches[row_type].drain()
        # The digest comes first, because it refuses values of a wrong type. Arrow would convert 1.5 to 1 in a column of
        # integers.
        self._digest.update(table, columns)
        self._files[row_type].write(columns)

    def _refused(self, row: object) -> Exception:
        if self._is_open:
            return TypeError(f"a {type(row).__name__} is not a row of a trace")
        return ValueError(f"the trace is closed, and {row} was not recorded")


class _TableFile:
    """One table's file, under a hidden name until it is complete."""

    def __init__(self, folder: Path, table: Table, run: str, number: int = 0) -> None:
        self._final = folder / f"part-{number:05}.parquet"
        self._hidden = folder / f".{self._final.name}.unfinished"
        self._is_revealed = False
        self.has_rows = False
        self._table = table
        self._run = run
        self._number = number
        self._schema = arrow_schema(table)
        # Times hardly ever repeat, so a dictionary of them costs time and space. They are not encoded, because most
        # versions of Spark cannot read the denser encodings.
        repeating = [column.name for column in table.columns if column.type != "float"]
        with _writing(self._hidden):
            folder.mkdir(parents=True, exist_ok=True)
            self._writer = _parquet().ParquetWriter(
                self._hidden, self._schema, compression="zstd", use_dictionary=repeating, write_page_checksum=True
            )

    def write(self, columns: Columns) -> None:
        arrow = _arrow()
        arrays = [arrow.repeat(self._run, len(columns[0]))]
        for field, values in zip(list(self._schema)[1:], columns, strict=True):
            try:
                arrays.append(arrow.array(values, field.type))
            except arrow.ArrowException as error:
                raise TypeError(f"{self._hidden}: the column {field.name} takes {field.type}: {error}") from error
        with _writing(self._hidden):
            self._writer.write_table(arrow.Table.from_arrays(arrays, schema=self._schema))
        self.has_rows = True

    def successor(self) -> _TableFile:
        return _TableFile(self._final.parent, self._table, self._run, self._number + 1)

    def complete(self) -> None:
        with _writing(self._hidden):
            self._writer.close()

    def reveal(self) -> None:
        with _writing(self._final):
            self._hidden.rename(self._final)
        self._is_revealed = True

    def remove(self) -> None:
        # Closing writes the end of the file. If writing has failed, this fails too.
        with suppress(OSError):
            self._writer.close()
        path = self._final if self._is_revealed else self._hidden
        path.unlink(missing_ok=True)


def read_table(directory: Path, table: str) -> pyarrow.Table:
    """Reads a whole table of the run in this directory, with its column `run`."""
    tables = []
    for path in _files(directory, _known(table)):
        with _reading(path), _parquet().ParquetFile(path, page_checksum_verification=True) as file:
            _check_schema(path, file.schema_arrow, TABLES[table])
            tables.append(file.read())
    return _arrow().concat_tables(tables)


def complete_files(directory: Path, table: str) -> list[Path]:
    """The files of a table. Reads the end of each, and raises if a file is cut off or belongs to another table."""
    files = _files(directory, _known(table))
    for path in files:
        with _reading(path), _parquet().ParquetFile(path) as file:
            _check_schema(path, file.schema_arrow, TABLES[table])
    return files


@overload
def iter_rows(directory: Path, table: type[RowT]) -> Iterator[RowT]: ...
@overload
def iter_rows(directory: Path, table: str) -> Iterator[Row]: ...
def iter_rows(directory: Path, table: str | type[Any]) -> Iterator[Any]:
    """Iterates over the rows of a table, given by its name or its row class, without loading all of them at once."""
    known = _known(table) if isinstance(table, str) else TABLE_OF[table]
    return _rows(_files(directory, known), known)


def arrow_schema(table: Table) -> pyarrow.Schema:
    """Returns the table's columns as an Arrow schema."""
    arrow = _arrow()
    types = {"str": arrow.string(), "int": arrow.int64(), "float": arrow.float64(), "bool": arrow.bool_()}
    return arrow.schema(
        [arrow.field(column.name, types[column.type], nullable=column.is_nullable) for column in table.columns]
    )


def _rows(paths: Sequence[Path], table: Table) -> Iterator[Row]:
    for path in paths:
        with _reading(path), _parquet().ParquetFile(path, page_checksum_verification=True) as file:
            _check_schema(path, file.schema_arrow, table)
            for batch in file.iter_batches(BATCH_ROWS):
                yield from map(table.row_type, *(column.to_pylist() for column in batch.columns[1:]))


def _folder(directory: Path, table: Table) -> Path:
    return directory / "trace" / table.name


def _files(directory: Path, table: Table) -> list[Path]:
    folder = _folder(directory, table)
    if not folder.is_dir():
        raise TraceError(f"{folder} is missing: {directory} is not the directory of a run with a trace")
    files = sorted(folder.glob("[!.]*.parquet"))
    if not files:
        raise TraceError(f"{folder / PART} is missing: the run did not come to its end; run it again")
    return files


def _known(name: str) -> Table:
    if name not in TABLES:
        raise TraceError(f"a trace has no table {name!r}; known: {', '.join(TABLES)}")
    return TABLES[name]


def _refuse_to_overwrite(directory: Path) -> None:
    for table in TABLES.values():
        for path in sorted(_folder(directory, table).glob("[!.]*.parquet")):
            raise TraceError(f"{path} is already there: choose another directory for this run, or remove that trace")


def _check_schema(path: Path, found: pyarrow.Schema, table: Table) -> None:
    expected = arrow_schema(table)
    if not found.equals(expected):
        raise TraceError(
            f"{path} is no table {table.name!r} of this version: it has {_words(found)}, not {_words(expected)}"
        )


def _words(schema: pyarrow.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}{'' if field.nullable else ' not null'}" for field in schema)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise TraceWriteError(f"cannot write {path}: {error}") from error


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except (_arrow().ArrowException, OSError) as error:
        raise TraceError(f"{path} is damaged or cannot be read: {error}") from error


def _arrow() -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise TraceError(f"traces need {error.name}: pip install 'mercast[sim]'") from error
    return pyarrow


def _parquet() -> Any:
    _arrow()
    import pyarrow.parquet

    return pyarrow.parquet
