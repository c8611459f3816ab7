import { sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import { file, node } from '#db/schema/files.ts'
import { embeddingIndex, extractedText, fileIndex } from '#db/schema/retrieval.ts'
import type { Transaction } from '#jobs/jobs.ts'
import type { DocumentText } from '#retrieval/extraction/document-text.ts'

export type IngestDatabase = Pick<Database, 'drizzle'>

/** A file on its way into an index. */
export type IngestTask = { readonly fileId: string; readonly indexId: number }

export type Stage = 'parsing' | 'splitting' | 'embedding' | 'indexing'

/** The content that is to be read, as it is now. */
export type IngestSource = {
  readonly name: string
  readonly mimeType: string
  readonly bytes: number
  readonly sha256: string
}

export type IngestFailure = {
  readonly state: 'failed' | 'skipped'
  readonly code: string
  readonly message: string
}

export type IngestStore = ReturnType<typeof createIngestStore>

export function createIngestStore({ drizzle }: IngestDatabase, { now }: { now: () => Date }) {
  const at = () => sql`${now().toISOString()}::timestamptz`
  const isTask = ({ fileId, indexId }: IngestTask) =>
    sql`${fileIndex.fileId} = ${fileId}::uuid and ${fileIndex.indexId} = ${indexId}`
  return {
    /** Counts a try. Undefined where nobody wants the file in this index, or it is there already. */
    async begin(task: IngestTask): Promise<IngestSource | undefined> {
      const [source] = await drizzle.execute<IngestSource>(sql`
        update ${fileIndex} set stage = 'parsing', attempts = attempts + 1, updated_at = ${at()}
        from ${file} join ${node} on ${node.id} = ${file.nodeId}
        where ${isTask(task)} and ${file.nodeId} = ${fileIndex.fileId}
          and ${fileIndex.state} = 'pending'
        returning ${node.name} as name, ${file.mimeType} as "mimeType",
          ${file.bytes}::float8 as bytes, ${file.sha256} as sha256`)
      return source
    },

    async enter(task: IngestTask, stage: Stage): Promise<void> {
      await drizzle.execute(sql`
        update ${fileIndex} set stage = ${stage}, updated_at = ${at()}
        where ${isTask(task)} and ${fileIndex.state} = 'pending'`)
    },

    /** It is tried again later; whoever looks sees what has been in the way. */
    async wait(task: IngestTask, failure: { code: string; message: string }): Promise<void> {
      await drizzle.execute(sql`
        update ${fileIndex} set stage = 'waiting', error_code = ${failure.code},
          error_message = ${failure.message}, updated_at = ${at()}
        where ${isTask(task)} and ${fileIndex.state} = 'pending'`)
    },

    ...settling(drizzle, { at, isTask }),
    ...textTables(drizzle, at),
  }
}

type Statements = {
  at: () => ReturnType<typeof sql>
  isTask: (task: IngestTask) => ReturnType<typeof sql>
}

/** What a transaction that puts passages into an index has to do besides. */
type Write = (transaction: Transaction) => Promise<void>

/** How a try ended: `changed`, where the file has another content by now. */
export type Settled = 'settled' | 'changed' | 'unwanted'

function settling(drizzle: Database['drizzle'], { at, isTask }: Statements) {
  /** Locks come in the order in which those who change and delete files take them. */
  async function look(transaction: Transaction, task: IngestTask, sha256: string | null) {
    await transaction.execute(
      sql`select 1 from ${node} where id = ${task.fileId}::uuid for key share`,
    )
    const [content] = await transaction.execute<{ sha256: string }>(
      sql`select sha256 from ${file} where node_id = ${task.fileId}::uuid for share`,
    )
    const rows = await transaction.execute(sql`
      select 1 from ${fileIndex} where ${isTask(task)} and ${fileIndex.state} = 'pending'
      for update`)
    if (content === undefined || rows.length === 0) return 'unwanted' as const
    return sha256 === null || content.sha256 === sha256 ? ('settled' as const) : 'changed'
  }

  return {
    /** The passages of this content are in the index, all of them or none. */
    done: (
      task: IngestTask,
      { sha256, chunks }: { sha256: string; chunks: number },
      write: Write,
    ): Promise<Settled> =>
      drizzle.transaction(async (transaction) => {
        const found = await look(transaction, task, sha256)
        if (found !== 'settled') return found
        await write(transaction)
        await transaction.execute(sql`
          update ${fileIndex} set state = 'done', stage = 'indexing', sha256 = ${sha256},
            chunks = ${chunks}, error_code = null, error_message = null, updated_at = ${at()}
          where ${isTask(task)}`)
        return found
      }),

    /** `sha256`: of the content that is to blame; null: the last that was tried. */
    failed: (
      task: IngestTask,
      { sha256, failure }: { sha256: string | null; failure: IngestFailure },
      write: Write,
    ): Promise<Settled> =>
      drizzle.transaction(async (transaction) => {
        const found = await look(transaction, task, sha256)
        if (found !== 'settled') return found
        // Where no try was counted, the content is another one since the last.
        const rows = await transaction.execute(sql`
          update ${fileIndex} set state = ${failure.state}, sha256 = null, chunks = 0,
            error_code = ${failure.code}, error_message = ${failure.message}, updated_at = ${at()}
          where ${isTask(task)} and attempts > 0 returning 1`)
        if (rows.length === 0) return 'changed'
        await write(transaction)
        return found
      }),

    /**
     * All of a file that is not under way is to be done anew, from its content on; tells what that is.
     * Null where something of it is under way.
     */
    again: (
      fileId: string,
      add: (transaction: Transaction, task: IngestTask) => Promise<void>,
    ): Promise<readonly IngestTask[] | null> =>
      drizzle.transaction(async (transaction) => {
        const rows = await transaction.execute<{ indexId: number; state: string }>(sql`
          select index_id as "indexId", ${fileIndex.state} as state from ${fileIndex}
          join ${embeddingIndex} on ${embeddingIndex.id} = index_id
          where file_id = ${fileId}::uuid and ${embeddingIndex.state} in ('active', 'building')
          order by index_id for update of ${fileIndex}`)
        if (rows.some(({ state }) => state === 'pending')) return null
        await transaction.execute(sql`
          delete from ${extractedText} where sha256 in (
            select sha256 from ${file} where node_id = ${fileId}::uuid)`)
        const tasks = rows.map(({ indexId }) => ({ fileId, indexId }))
        for (const task of tasks) {
          await transaction.execute(sql`
            update ${fileIndex} set state = 'pending', stage = 'waiting', attempts = 0,
              error_code = null, error_message = null, updated_at = ${at()}
            where ${isTask(task)}`)
          await add(transaction, task)
        }
        return tasks
      }),
  }
}

function textTables(drizzle: Database['drizzle'], at: Statements['at']) {
  return {
    async findText(sha256: string, extractor: string): Promise<DocumentText | undefined> {
      const [row] = await drizzle.execute<{ text: string; pages: string | null }>(sql`
        select text, pages from ${extractedText}
        where sha256 = ${sha256} and extractor = ${extractor}`)
      if (row === undefined) return undefined
      return { text: row.text, pages: row.pages === null ? null : JSON.parse(row.pages) }
    },

    /** Of a content that some file still has. */
    async keepText(sha256: string, extractor: string, { text, pages }: DocumentText) {
      const starts = pages === null ? null : JSON.stringify(pages)
      await drizzle.execute(sql`
        insert into ${extractedText} (sha256, extractor, text, pages, created_at)
        select ${sha256}, ${extractor}, ${text}, ${starts}::text, ${at()}
        where exists (select 1 from ${file} where sha256 = ${sha256})
        on conflict do nothing`)
    },

    /** Forgets the texts of contents that no file has any more. */
    async dropTexts(): Promise<void> {
      await drizzle.execute(sql`
        delete from ${extractedText} where not exists (
          select 1 from ${file} where ${file.sha256} = ${extractedText.sha256})`)
    },
  }
}
