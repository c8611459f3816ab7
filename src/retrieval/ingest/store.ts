import { sql } from 'drizzle-orm'
import type { Database, Transaction } from '#db/client.ts'
import { file, node } from '#db/schema/files.ts'
import { embeddingIndex, extractedText, fileIndex } from '#db/schema/retrieval.ts'
import type { ExtractedText } from '#retrieval/extraction/extraction.ts'
import type { TextWarning } from '#retrieval/extraction/gaps.ts'
import { instant } from '#retrieval/sql-store.ts'

export type IngestDatabase = Pick<Database, 'drizzle'>

/** A file to be ingested into an index. */
export type IngestTask = { readonly fileId: string; readonly indexId: number }

export type IngestStage = 'parsing' | 'splitting' | 'embedding' | 'indexing'

/** The present content of the file. */
export type IngestSource = {
  readonly name: string
  readonly mimeType: string
  readonly bytes: number
  readonly sha256: string
  /** 1 at the first attempt. */
  readonly attempts: number
  /** Whether searches find passages of former content. */
  readonly isSearchable: boolean
}

export type IngestFailure = {
  readonly state: 'failed' | 'skipped'
  readonly code: string
  readonly message: string
  readonly warnings: readonly TextWarning[]
}

/** `changed`: the content has changed meanwhile; `obsolete`: the index no longer needs the file. */
export type IngestOutcome = 'settled' | 'changed' | 'obsolete'

/** Further writes in the same transaction. */
type Write = (transaction: Transaction) => Promise<void>

export function createIngestStore({ drizzle }: IngestDatabase, { now }: { now: () => Date }) {
  const at = () => instant(now())
  const isTask = ({ fileId, indexId }: IngestTask) =>
    sql`${fileIndex.fileId} = ${fileId}::uuid and ${fileIndex.indexId} = ${indexId}`

  /**
   * Locks the file and the task, in the lock order of file changes. `sha256` is the content of the
   * attempt; null: any.
   */
  async function lockTask(transaction: Transaction, task: IngestTask, sha256: string | null) {
    await transaction.execute(
      sql`select 1 from ${node} where id = ${task.fileId}::uuid for key share`,
    )
    const [content] = await transaction.execute<{ sha256: string }>(
      sql`select sha256 from ${file} where node_id = ${task.fileId}::uuid for share`,
    )
    const rows = await transaction.execute(sql`
      select 1 from ${fileIndex} where ${isTask(task)} and ${fileIndex.state} = 'pending'
      for update`)
    if (content === undefined || rows.length === 0) return 'obsolete' as const
    return sha256 === null || content.sha256 === sha256 ? ('settled' as const) : 'changed'
  }

  return {
    /** Counts an attempt. Undefined if the file is not pending in this index. */
    async begin(task: IngestTask): Promise<IngestSource | undefined> {
      const [source] = await drizzle.execute<IngestSource>(sql`
        update ${fileIndex} set stage = 'parsing', attempts = attempts + 1, updated_at = ${at()}
        from ${file} join ${node} on ${node.id} = ${file.nodeId}
        where ${isTask(task)} and ${file.nodeId} = ${fileIndex.fileId}
          and ${fileIndex.state} = 'pending'
        returning ${node.name} as name, ${file.mimeType} as "mimeType",
          ${file.bytes}::float8 as bytes, ${file.sha256} as sha256,
          ${fileIndex.attempts} as attempts, ${fileIndex.sha256} is not null as "isSearchable"`)
      return source
    },

    async setStage(task: IngestTask, stage: IngestStage): Promise<void> {
      await drizzle.execute(sql`
        update ${fileIndex} set stage = ${stage}, updated_at = ${at()}
        where ${isTask(task)} and ${fileIndex.state} = 'pending'`)
    },

    /** Records the error of an attempt that will be retried. */
    async setWaiting(task: IngestTask, failure: { code: string; message: string }): Promise<void> {
      await drizzle.execute(sql`
        update ${fileIndex} set stage = 'waiting', error_code = ${failure.code},
          error_message = ${failure.message}, updated_at = ${at()}
        where ${isTask(task)} and ${fileIndex.state} = 'pending'`)
    },

    /** Writes passages of a file that is not complete. */
    write: (task: IngestTask, sha256: string, write: Write): Promise<IngestOutcome> =>
      drizzle.transaction(async (transaction) => {
        const outcome = await lockTask(transaction, task, sha256)
        if (outcome === 'settled') await write(transaction)
        return outcome
      }),

    complete: (
      task: IngestTask,
      content: { sha256: string; chunks: number; warnings: readonly TextWarning[] },
      write: Write,
    ): Promise<IngestOutcome> =>
      drizzle.transaction(async (transaction) => {
        const outcome = await lockTask(transaction, task, content.sha256)
        if (outcome !== 'settled') return outcome
        await write(transaction)
        await transaction.execute(sql`
          update ${fileIndex} set state = 'done', stage = 'indexing',
            sha256 = ${content.sha256}, chunks = ${content.chunks}, error_code = null,
            error_message = null, warnings = ${jsonOf(content.warnings)}, updated_at = ${at()}
          where ${isTask(task)}`)
        return outcome
      }),

    /** `sha256` is the content that failed; null: the content of the last attempt. */
    fail: (
      task: IngestTask,
      { sha256, failure }: { sha256: string | null; failure: IngestFailure },
      write: Write,
    ): Promise<IngestOutcome> =>
      drizzle.transaction(async (transaction) => {
        const outcome = await lockTask(transaction, task, sha256)
        if (outcome !== 'settled') return outcome
        // Attempts are reset when the content changes.
        const rows = await transaction.execute(sql`
          update ${fileIndex} set state = ${failure.state}, sha256 = null, chunks = 0,
            error_code = ${failure.code}, error_message = ${failure.message},
            warnings = ${jsonOf(failure.warnings)}, updated_at = ${at()}
          where ${isTask(task)} and attempts > 0 returning 1`)
        if (rows.length === 0) return 'changed'
        await write(transaction)
        return outcome
      }),

    /** Resets a file in all indexes and returns its tasks; null if any of them is pending. */
    restart: (
      fileId: string,
      add: (transaction: Transaction, task: IngestTask & { ownerId: string }) => Promise<void>,
    ): Promise<readonly IngestTask[] | null> =>
      drizzle.transaction(async (transaction) => {
        const rows = await transaction.execute<{
          indexId: number
          state: string
          ownerId: string
        }>(sql`
          select index_id as "indexId", ${fileIndex.state} as state,
            (select owner_id from ${node} where ${node.id} = file_id) as "ownerId" from ${fileIndex}
          join ${embeddingIndex} on ${embeddingIndex.id} = index_id
          where file_id = ${fileId}::uuid and ${embeddingIndex.state} in ('active', 'building')
          order by index_id for update of ${fileIndex}`)
        if (rows.some(({ state }) => state === 'pending')) return null
        await transaction.execute(sql`
          delete from ${extractedText} where sha256 in (
            select sha256 from ${file} where node_id = ${fileId}::uuid)`)
        const tasks = rows.map(({ indexId, ownerId }) => ({ fileId, indexId, ownerId }))
        for (const task of tasks) {
          await transaction.execute(sql`
            update ${fileIndex} set state = 'pending', stage = 'waiting', attempts = 0,
              error_code = null, error_message = null, updated_at = ${at()}
            where ${isTask(task)}`)
          await add(transaction, task)
        }
        return tasks
      }),

    async findText(sha256: string, extractor: string): Promise<ExtractedText | undefined> {
      const [row] = await drizzle.execute<
        Record<'pages' | 'warnings', string | null> & { text: string }
      >(sql`
        select text, pages, warnings from ${extractedText}
        where sha256 = ${sha256} and extractor = ${extractor}`)
      if (row === undefined) return undefined
      return {
        text: row.text,
        pages: row.pages === null ? null : JSON.parse(row.pages),
        warnings: row.warnings === null ? [] : JSON.parse(row.warnings),
      }
    },

    /** Only for content that a file still has. */
    async cacheText(sha256: string, extractor: string, { text, pages, warnings }: ExtractedText) {
      const starts = pages === null ? null : JSON.stringify(pages)
      await drizzle.execute(sql`
        insert into ${extractedText} (sha256, extractor, text, pages, warnings, created_at)
        select ${sha256}, ${extractor}, ${text}, ${starts}::text, ${jsonOf(warnings)}::text, ${at()}
        where exists (select 1 from ${file} where sha256 = ${sha256})
        on conflict do nothing`)
    },

    /** Deletes the texts of content that no file has. */
    async deleteUnusedTexts(): Promise<void> {
      await drizzle.execute(sql`
        delete from ${extractedText} where not exists (
          select 1 from ${file} where ${file.sha256} = ${extractedText.sha256})`)
    },
  }
}

/** Null without warnings. */
function jsonOf(warnings: readonly TextWarning[]): string | null {
  return warnings.length === 0 ? null : JSON.stringify(warnings)
}
