import { and, asc, count, eq, gt, inArray, isNull, lt, sql } from 'drizzle-orm'
import type { Database, Transaction } from '#db/client.ts'
import { createQueryRunner } from '#db/query-runner.ts'
import { download, downloadLine } from '#db/schema/installer.ts'
import { AppError } from '#lib/errors.ts'
import type { DownloadError, DownloadLine, FileState } from './installer.ts'
import type { RuntimeTask } from './runtime.ts'
import type { Source } from './sources/source.ts'

export type InstallerDatabase = Pick<Database, 'drizzle' | 'listen' | 'notify' | 'notifyOnCommit'>
export type Handle = Pick<Transaction, 'execute' | 'select' | 'insert' | 'update' | 'delete'>

/** The task of a download, as stored. */
export type DownloadTask =
  | {
      readonly kind: 'install'
      readonly source: Source
      readonly allowsUnsafe: boolean
      /** Delete the data on cancellation. */
      readonly isDiscarded?: boolean
    }
  | RuntimeTask
  /** `source` is that of the installed model. */
  | { readonly kind: 'verify'; readonly source: string }

type Row = typeof download.$inferSelect

/** The installation or verification of a model, as stored. */
export type Download = Readonly<Omit<Row, 'source' | 'files' | 'error'>> & {
  readonly task: DownloadTask
  readonly files: readonly FileState[]
  readonly error: DownloadError | null
}

export type DownloadChange = Partial<
  Pick<
    Download,
    | 'task'
    | 'revision'
    | 'status'
    | 'wanted'
    | 'bytesTotal'
    | 'bytesPerSecond'
    | 'files'
    | 'error'
    | 'attempts'
    | 'finishedAt'
  >
> & {
  /** Ignored if lower than before. */
  readonly bytesCompleted?: number
}

export type NewLine = Omit<DownloadLine, 'seq'>

/** All queries fail fast, also those of running downloads, which are then retried. */
export function createDownloadStore({ drizzle }: Pick<Database, 'drizzle'>) {
  const runQuery = createQueryRunner()
  return {
    query: <T>(run: (handle: Handle) => Promise<T>): Promise<T> => runQuery(() => run(drizzle)),
    transact: <T>(run: (transaction: Transaction) => Promise<T>): Promise<T> =>
      runQuery(() => drizzle.transaction(run)),
  }
}

export type DownloadStore = ReturnType<typeof createDownloadStore>

/** Serialises starts, commits and deletions of a model until the end of the transaction. */
export async function lockModel(transaction: Transaction, model: string): Promise<void> {
  await transaction.execute(
    sql`select pg_advisory_xact_lock(hashtextextended(${`model ${model}`}, 0))`,
  )
}

export async function insertDownload(
  transaction: Transaction,
  row: Pick<Download, 'id' | 'model' | 'task' | 'files' | 'startedBy' | 'startedAt'> &
    Pick<Download, 'revision' | 'bytesTotal'>,
): Promise<void> {
  const { task, files, ...rest } = row
  await transaction.insert(download).values({
    ...rest,
    source: JSON.stringify(task),
    files: JSON.stringify(files),
    status: 'queued',
    wanted: 'run',
    updatedAt: row.startedAt,
  })
}

export async function readDownload(handle: Handle, id: string): Promise<Download | undefined> {
  const [row] = await handle.select().from(download).where(eq(download.id, id))
  return row === undefined ? undefined : parse(row)
}

export async function lockDownload(
  transaction: Transaction,
  id: string,
): Promise<Download | undefined> {
  const [row] = await transaction.select().from(download).where(eq(download.id, id)).for('update')
  return row === undefined ? undefined : parse(row)
}

export async function findActive(handle: Handle, model: string): Promise<Download | undefined> {
  const [row] = await handle
    .select()
    .from(download)
    .where(and(eq(download.model, model), isNull(download.finishedAt)))
  return row === undefined ? undefined : parse(row)
}

export async function listActive(handle: Handle, max: number): Promise<readonly Download[]> {
  const rows = await handle
    .select()
    .from(download)
    .where(isNull(download.finishedAt))
    .orderBy(asc(download.id))
    .limit(max)
  return rows.map(parse)
}

export async function countActive(handle: Handle): Promise<number> {
  const [row] = await handle
    .select({ active: count() })
    .from(download)
    .where(isNull(download.finishedAt))
  return row?.active ?? 0
}

/** Updates an active download; false: it is finished. */
export async function updateDownload(
  handle: Handle,
  id: string,
  { task, files, error, bytesCompleted, ...change }: DownloadChange,
  at: Date,
): Promise<boolean> {
  const changed = await handle
    .update(download)
    .set({
      ...change,
      ...(task === undefined ? {} : { source: JSON.stringify(task) }),
      ...(files === undefined ? {} : { files: JSON.stringify(files) }),
      ...(error === undefined ? {} : { error: error === null ? null : JSON.stringify(error) }),
      ...(bytesCompleted === undefined
        ? {}
        : { bytesCompleted: sql`greatest(${download.bytesCompleted}, ${bytesCompleted}::bigint)` }),
      updatedAt: at,
    })
    .where(and(eq(download.id, id), isNull(download.finishedAt)))
    .returning({ id: download.id })
  return changed.length > 0
}

export async function listLines(
  handle: Handle,
  id: string,
  { afterSeq, limit }: { afterSeq: number; limit: number },
): Promise<readonly DownloadLine[]> {
  const { seq, at, level, message } = downloadLine
  return handle
    .select({ seq, at, level, message })
    .from(downloadLine)
    .where(and(eq(downloadLine.downloadId, id), gt(seq, afterSeq)))
    .orderBy(asc(seq))
    .limit(limit)
}

/** Appends lines and drops all but the last `linesMax`. */
export async function appendLines(
  transaction: Transaction,
  id: string,
  { lines, linesMax }: { lines: readonly NewLine[]; linesMax: number },
): Promise<void> {
  if (lines.length === 0) return
  const [last] = await transaction
    .select({ seq: sql<number | null>`max(${downloadLine.seq})` })
    .from(downloadLine)
    .where(eq(downloadLine.downloadId, id))
  const before = last?.seq ?? 0
  const values = lines.map((line, index) => ({ ...line, downloadId: id, seq: before + index + 1 }))
  await transaction.insert(downloadLine).values(values)
  const keptAfter = before + lines.length - linesMax
  await transaction
    .delete(downloadLine)
    .where(and(eq(downloadLine.downloadId, id), lt(downloadLine.seq, keptAfter + 1)))
}

export async function removeLines(transaction: Transaction, id: string): Promise<void> {
  await transaction.delete(downloadLine).where(eq(downloadLine.downloadId, id))
}

export async function deleteDownloads(handle: Handle, finishedBefore: Date): Promise<void> {
  await handle.delete(download).where(lt(download.finishedAt, finishedBefore))
}

/** Those of the models that have a download. */
export async function modelsWithDownload(
  handle: Handle,
  models: readonly string[],
): Promise<ReadonlySet<string>> {
  if (models.length === 0) return new Set()
  const rows = await handle
    .select({ model: download.model })
    .from(download)
    .where(inArray(download.model, [...models]))
  return new Set(rows.map(({ model }) => model))
}

function parse({ source, files, error, ...row }: Row): Download {
  return {
    ...row,
    task: JSON.parse(source),
    files: JSON.parse(files),
    error: error === null ? null : JSON.parse(error),
  }
}

/** Throws `not_found`. */
export async function requireDownload(handle: Handle, id: string): Promise<Download> {
  const row = await readDownload(handle, id)
  if (row === undefined) throw downloadNotFound(id)
  return row
}

export function downloadNotFound(id: string): AppError {
  const message = `There is no download with the id "${id}".`
  return new AppError('not_found', message, { param: 'download_id' })
}
