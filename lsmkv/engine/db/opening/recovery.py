"""Recovery: what opening a store does, after a clean close and after a crash alike.

It reads the MANIFEST, replays the logs, writes what they hold into tables, and begins a new log.
``docs/reference/format.md`` has the rules and their reasons, ``damage_policy.py`` what is done
about damage.  ``open_store`` calls it and holds the directory's LOCK; ``ReadOnlyRecovery`` takes
over the reading half.  Recovery may be killed at any moment and run again: it removes and renames
no file before its result is committed.
"""

from __future__ import annotations

import errno

from lsmkv.engine.counters import NUM_LEVELS
from lsmkv.engine.db.compact.flush import write_memtable
from lsmkv.engine.db.compact.output_filters import options_for_flush
from lsmkv.engine.db.opening import damage_policy
from lsmkv.engine.db.opening.dropped import DroppedLog, RecoveryReport, warn_of
from lsmkv.engine.db.opening.lost import set_aside
from lsmkv.engine.db.tree.info_log import InfoLog
from lsmkv.engine.db.tree.manifest import Manifest, read_manifest
from lsmkv.engine.db.tree.memtable import MemTable
from lsmkv.engine.db.tree.store_lock import StoreLock
from lsmkv.engine.db.tree.stored_codec import in_stored_codec
from lsmkv.engine.db.tree.table_output import remove_file, remove_table
from lsmkv.engine.db.tree.version import Version
from lsmkv.engine.db.tree.version_set import VersionSet
from lsmkv.engine.db.write.wal import WriteAheadLog
from lsmkv.engine.env.base import Directory
from lsmkv.engine.errors import CorruptionError
from lsmkv.engine.format.batch import Operation, decode_batch, last_sequence
from lsmkv.engine.format.filenames import (
    CURRENT,
    LOST,
    FileType,
    log_name,
    old_table_name,
    parse_filename,
    read_current,
    table_name,
)
from lsmkv.engine.format.foreign import refuse_certain, refuse_foreign, too_many_levels
from lsmkv.engine.format.keys import MAX_SEQUENCE, InternalKeyComparator
from lsmkv.engine.format.log import LogDamage, LogReader
from lsmkv.engine.format.log_zeros import lost_in_zeros, zeros_text
from lsmkv.engine.format.version_edit import VersionEdit
from lsmkv.engine.options import Options
from lsmkv.engine.util.signals import deferred


class Recovery:
    """Recovers one directory: ``run``, once.  The caller holds its LOCK."""

    _read_only = False
    _most = MAX_SEQUENCE
    """The last sequence to be replayed."""

    def __init__(
        self,
        directory: Directory,
        options: Options,
        comparator: InternalKeyComparator,
        info_log: InfoLog,
        lock: StoreLock,
    ) -> None:
        """``lock`` is the store's, which guards the memtable."""
        self._directory = directory
        self.options = options
        """The settings; recovery sets those that depend on what the store holds."""
        self._comparator = comparator
        self._order = comparator.order
        self._info_log = info_log
        self.policy = damage_policy.DamagePolicy(
            directory.path, info_log, self._read_only, options.paranoid_checks
        )
        """Decides on damage."""
        self._lock = lock
        self._versions = VersionSet(directory, options, comparator)
        self._edit = VersionEdit()
        self._committing = False  # whether the MANIFEST may name the tables of the edit
        self._memtable = MemTable(comparator.user_comparator, lock)
        self.report = RecoveryReport(directory.path)
        """Report of what is left out of the logs, once they have been replayed."""
        self._manifest_name = ""
        self._manifest: Manifest | None = None
        self._manifest_torn = False
        # The sequence at which the next batch must start.  It is None before the oldest log's first
        # batch: the MANIFEST's last sequence says nothing about that one, so neither damage before
        # it nor a gap can be judged by it (``docs/reference/format.md``).
        self._expected: int | None = None
        self._any_applied = False  # whether a batch was applied
        self._begun: list[str] = []  # files that were made before the last table
        self._log_end = 0  # where the last record of the log read last ends
        self._log_last = -1  # and where it starts
        self._unjudged: tuple[int, LogDamage] | None = None  # a log's number, and damage in it
        self._zeros = ""  # what to say of zeros after the last batch

    def run(self) -> tuple[Recovered, WriteAheadLog]:
        """Recover the store, or begin a new one in a directory without CURRENT.

        Raises :class:`CorruptionError` (for damage that loses more than a torn record at the end),
        :class:`ComparatorMismatchError`, :class:`ForeignFormatError`, and ``OSError``: a failed
        system call is never taken for the end of a file.  If nothing was committed, the tables that
        it made are removed: each attempt on a full disk would leave less space for the next.
        """
        try:
            return self._recover()
        except BaseException:
            self._versions.close()
            if not self._committing:
                for _, file in self._edit.new_files:
                    remove_table(self._directory, file.number)
                for name in self._begun:
                    remove_file(self._directory, name)
            raise

    def _recover(self) -> tuple[Recovered, WriteAheadLog]:
        names = self._directory.names()
        if self._directory.exists(CURRENT):
            self._read_manifest(names)
            tables = self._versions.current.numbers
            self.options = in_stored_codec(self.options, self._directory, tables)
        self._info_log.begin()
        for name in names:
            parsed = parse_filename(name)
            if parsed is not None:
                # A killed process may leave files numbered beyond the MANIFEST's counter.
                self._versions.mark_file_number_used(parsed[0])
        logs = self._replay_logs(names)
        if self.report.dropped:
            warn_of(self.report)  # while nothing is committed: it may be made an error
        if self._is_settled(names, logs) and (settled := self._go_on(logs[0])) is not None:
            return settled
        wal = self._continue_log(logs) if self.options.reuse_logs else None
        if wal is None:
            wal = self._flush_and_begin_log()
        if self.report.dropped:
            set_aside(self._directory, self.report, self._versions.last_sequence)
        self._edit.log_number = wal.number
        self._edit.prev_log_number = 0
        self._committing = True
        self._versions.log_and_apply(self._edit)
        self._memtable.log_number = wal.number
        return Recovered(self._versions, self._memtable), wal

    def _replay(self, number: int) -> LogDamage | None:
        """Apply a log's batches, and return the damage at which there is a gap, if there is one."""
        name = log_name(number)
        first = True
        any_before = self._any_applied
        with self._directory.open(name) as file:
            reader = LogReader(file, reserved=True)
            end = 0
            last = -1
            for record in reader:
                if self._most < MAX_SEQUENCE and last_sequence(record.payload) > self._most:
                    self._log_end = end
                    self._log_last = last
                    return None
                deferred.deliver()
                end, last = record.end, record.offset
                self._note_damage(number, record.damage)
                try:
                    sequence, operations = decode_batch(record.payload)
                except CorruptionError as error:
                    self._note_damage(number, LogDamage(record.offset, error.reason))
                    continue
                if self._unjudged is not None:
                    damaged, damage = self._unjudged
                    if sequence != self._expected:
                        return damage
                    self.policy.meet(
                        damage_policy.TORN_RECORD,
                        f"{log_name(damaged)}: {damage.reason} at {damage.offset}; no"
                        " acknowledged write is missing",
                    )
                    self._unjudged = None
                elif first and self._expected is not None and sequence != self._expected:
                    reason = f"the log begins with write {sequence}, not {self._expected}"
                    if sequence > self._expected:
                        return LogDamage(0, reason)
                    if any_before:
                        # Logs have changed places: the batches applied are not a prefix.
                        self.policy.meet(damage_policy.SWAPPED_LOGS, reason, name, 0)
                first = False
                self._apply(sequence, operations)
            self._note_damage(number, reader.tail)
            self._log_end = reader.end
            self._log_last = reader.last
            if not first:
                self._zeros = ""  # no write is missing before those of this log
            zeros = lost_in_zeros(file, reader.end)
            if zeros > 0:
                self._zeros = f"{name}: {zeros_text(file.size, zeros)}"
        if self._expected is None:
            # This log is empty: the next one continues where the tables end.
            self._expected = self._versions.last_sequence + 1
        return None

    # Beyond the tour: the other steps, and how damage is judged

    # A store with nothing to recover

    def _is_settled(self, names: list[str], logs: list[int]) -> bool:
        """True if everything is in tables: the only log is empty, and all files are in use."""
        versions = self._versions
        if logs != [versions.log_number] or self._log_end > 0 or self._unjudged is not None:
            return False
        live = versions.current.numbers
        for name in names:
            parsed = parse_filename(name)
            if parsed is None:
                continue
            number, kind = parsed
            if (
                kind in (FileType.TEMPORARY, FileType.STATS)
                or (kind is FileType.MANIFEST and name != self._manifest_name)
                or (kind is FileType.LOG and name != log_name(versions.log_number))
                or (kind is FileType.TABLE and number not in live)
            ):
                return False
        return not self._manifest_torn

    def _go_on(self, log: int) -> tuple[Recovered, WriteAheadLog] | None:
        """Open a settled store as it is, without a new MANIFEST; None if its log must stay.

        The first commit begins a new MANIFEST.  The last one's newest edit may not be durable, if
        its writer was killed.  If a power cut takes it away, the state before it is whole, and its
        logs lead up to this one: nothing is removed before a commit, and the names are durable.
        """
        self._directory.sync()
        wal = self._open_log(log)
        if wal is None:
            return None
        self._memtable.log_number = log
        return Recovered(self._versions, self._memtable), wal

    # MANIFEST

    def _read_manifest(self, names: list[str]) -> None:
        refuse_certain(self._directory.path, names)
        name = read_current(self._directory)
        self._manifest_name = name
        try:
            manifest = read_manifest(self._directory, name)
            manifest.check(self._comparator)
        except FileNotFoundError:
            reason = f"CURRENT names {name}, which is missing"
            self.policy.meet(damage_policy.MANIFEST_MISSING, reason, CURRENT)
            raise
        except CorruptionError:
            refuse_foreign(self._directory.path, names)
            raise
        deepest = manifest.deepest
        too_deep = self.policy.action(damage_policy.TOO_DEEP)
        if deepest >= NUM_LEVELS and too_deep == damage_policy.REFUSE:
            raise too_many_levels(self._directory.path, deepest)
        version = manifest.version(self._comparator)
        if manifest.tail is not None:
            self._judge_manifest_tail(manifest, version, names)
        self._manifest = manifest
        self._versions.load(manifest)
        self._versions.last_sequence = manifest.last_sequence
        self._versions.install(version)

    def _judge_manifest_tail(self, manifest: Manifest, version: Version, names: list[str]) -> None:
        """Take a bad last record for a torn one if every table before it exists in its full size;
        raise otherwise."""
        tail = manifest.tail
        assert tail is not None
        self._manifest_torn = True
        message = f"{manifest.path}: {tail.reason} at {tail.offset}"
        self.policy.meet(damage_policy.MANIFEST_TORN, message)
        present = set(names)
        for files in version.levels:
            for file in files:
                name = table_name(file.number)
                if name not in present:
                    name = old_table_name(file.number)
                if name not in present or self._directory.size(name) != file.size:
                    name = table_name(file.number)
                    reason = f"{tail.reason}, and {name} is missing or not of {file.size} bytes"
                    where = self._manifest_name
                    self.policy.meet(damage_policy.MANIFEST_CUT, reason, where, tail.offset)

    # Logs

    def _replay_logs(self, names: list[str]) -> list[int]:
        """Replay every log that the version does not cover, in order; returns their numbers.

        The sequence runs on through all of them, since each batch starts where the one before it
        ended.  Damage is harmless if the sequence continues after it: only a write that was never
        acknowledged is lost.  If it does not continue, there is a gap: the writes before it are
        kept, and none after it.
        """
        numbers = self._needed_logs(names)
        for at, number in enumerate(numbers):
            gap = self._replay(number)
            if gap is None:
                continue
            self._report_gap(gap, [log_name(later) for later in numbers[at:]])
            break
        else:
            self._judge_tail()
            if self._zeros:
                self.policy.meet(damage_policy.ZEROS_AT_END, self._zeros)
        return numbers

    def _needed_logs(self, names: list[str]) -> list[int]:
        versions = self._versions
        numbers: list[int] = []
        for name in names:
            parsed = parse_filename(name)
            if parsed is None or parsed[1] is not FileType.LOG or name != log_name(parsed[0]):
                continue
            if parsed[0] >= versions.log_number or parsed[0] == versions.prev_log_number:
                numbers.append(parsed[0])
        numbers.sort()
        if versions.log_number > 0 and versions.log_number not in numbers:
            name = log_name(versions.log_number)
            if numbers or self._manifest_torn:
                reason = "the log is missing, and so are its writes"
                self.policy.meet(damage_policy.LOG_MISSING, reason, name)
            # Some tools leave a store without any log, and nothing shows a loss.
            reason = f"{name} is missing: writes that no table holds are lost"
            self.policy.meet(damage_policy.NO_LOG, reason)
        return numbers

    def _note_damage(self, number: int, damage: LogDamage | None) -> None:
        """Remember the first damage since the last good batch, until it can be judged."""
        if damage is not None and self._unjudged is None:
            self._unjudged = number, damage

    def _report_gap(self, gap: LogDamage, logs: list[str]) -> None:
        if self._unjudged is not None and log_name(self._unjudged[0]) != logs[0]:
            logs.insert(0, log_name(self._unjudged[0]))
        reason = f"{gap.reason}, and writes are missing there"
        action = self.policy.meet(damage_policy.GAP, reason, logs[0], gap.offset)
        self._drop(gap, logs, action)

    def _drop(self, damage: LogDamage, logs: list[str], action: str) -> None:
        """Leave out what follows the damage in the first of the logs, and all of the others.

        Reads them to their end, so as to say how much that is.  ``action`` says what becomes of
        the logs.
        """
        expected = self._expected
        dropped: list[DroppedLog] = []
        for name in logs:
            batches = operations = missing = 0
            with self._directory.open(name) as file:
                reader = LogReader(file, reserved=True)
                for record in reader:
                    if record.offset < damage.offset:
                        continue
                    try:
                        sequence, found = decode_batch(record.payload)
                    except CorruptionError:
                        continue
                    batches += 1
                    operations += len(found)
                    missing += 0 if expected is None else max(0, sequence - expected)
                    expected = sequence + len(found)
            if batches == 0 and dropped and reader.tail is None:
                continue  # a recovery that was killed had begun it
            known = batches > 0 and self._expected is not None
            dropped.append(
                DroppedLog(
                    name,
                    damage.offset,
                    damage.reason,
                    batches,
                    operations,
                    missing if known else None,
                    f"{LOST}/{name}" if action == damage_policy.SET_ASIDE else None,
                )
            )
            self._info_log.warn(str(dropped[-1]))
            damage = LogDamage(0, f"it follows the damage in {logs[0]}")
        self.report = RecoveryReport(self._directory.path, tuple(dropped))

    def _judge_tail(self) -> None:
        """Judge the end of the newest log: a killed process leaves a torn record there."""
        if self._unjudged is None:
            return
        number, tail = self._unjudged
        name = log_name(number)
        if tail.torn:
            reason = f"{name}: ends at {tail.offset}: {tail.reason}"
            self.policy.meet(damage_policy.TORN_END, reason)
        else:
            self._drop(tail, [name], self.policy.meet(damage_policy.DAMAGED_END, tail.reason))

    def _apply(self, sequence: int, operations: list[Operation]) -> None:
        last = sequence + len(operations) - 1
        if last > MAX_SEQUENCE:
            self.policy.meet(damage_policy.OUT_OF_RANGE, f"a batch that ends at write {last}")
        self._memtable.add(sequence, operations, -1)
        self._memtable.applying = None
        self._expected = last + 1
        self._any_applied = True
        self._versions.last_sequence = max(self._versions.last_sequence, last)
        if self._memtable.usage > self.options.write_buffer_size:
            self._when_full()

    def _when_full(self) -> None:
        """Write a table: a log larger than the write buffer becomes several."""
        self._flush(self._versions.new_file_number())

    def _flush_and_begin_log(self) -> WriteAheadLog:
        """Write the memtable as a table, and begin an empty log.

        The log and the next MANIFEST get their names before the table's sync of the directory, so
        one sync does for the three: a fifth of the time of opening a store with a little in its
        log.
        """
        number = self._versions.new_file_number()
        wal = self._begin_log()
        if self._memtable.empty:
            return wal
        try:
            self._begun.append(log_name(wal.number))
            self._begun.append(self._versions.name_manifest())
            self._flush(number)
        except BaseException:
            wal.close()
            raise
        return wal

    def _flush(self, number: int) -> None:
        """Write the memtable as a table of level 0, which the edit of :meth:`run` names.

        Its name is durable afterwards, and so are those that the directory got before.
        """
        versions = self._versions
        options = options_for_flush(self.options, versions.current, self._memtable.usage)
        for file in write_memtable(
            self._memtable,
            self._directory,
            lambda: number,
            options._replace(flush_prefix=""),  # on level 0, where each table counts
            self._order,
            versions.last_sequence,
        ):
            self._edit.add_file(0, file)
        self._memtable = MemTable(self._comparator.user_comparator, self._lock)

    # The log that writes go to

    def _continue_log(self, logs: list[int]) -> WriteAheadLog | None:
        """The log, to be continued, if it is the only one, undamaged, and held by the memtable."""
        if len(logs) != 1 or self._unjudged is not None or self._edit.new_files:
            return None
        log = self._open_log(logs[0])
        if log is not None:
            self._info_log.write(f"Reusing {log_name(logs[0])}")
        return log

    def _open_log(self, number: int) -> WriteAheadLog | None:
        """The log that was read last, to be continued after its last record.

        None if it has other names: it may be another program's file.
        """
        mapped = self.options.mapped_log
        try:
            file = self._directory.continue_log(log_name(number), self._log_end, mapped)
        except OSError as error:
            if error.errno != errno.EMLINK:
                raise
            return None
        try:
            return WriteAheadLog(file, number, self._log_end)
        except BaseException:
            file.close()
            raise

    def _begin_log(self) -> WriteAheadLog:
        """An empty log.  The directory is synced once for it and for the MANIFEST that names it."""
        number = self._versions.new_file_number()
        file = self._directory.create_log(log_name(number), self.options.mapped_log)
        return WriteAheadLog(file, number)


class Recovered:
    """The state that recovery finds: the versions, and a memtable with what no table holds."""

    def __init__(self, versions: VersionSet, memtable: MemTable) -> None:
        self.versions = versions
        self.memtable = memtable
