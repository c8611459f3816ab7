import { sql } from 'drizzle-orm'
import type { Database, Transaction } from '#db/client.ts'
import { batch, batchLine } from '#db/schema/batches.ts'
import type { LineOutcome, LineUsage, PendingLine } from './batches.ts'

export type LineStore = ReturnType<typeof createLineStore>

export type NewLine = PendingLine & { readonly slot: number }

/** What is recorded of an answered line: the line of the output. */
export type LineAnswer = {
  readonly answer: string
  readonly outcome: LineOutcome
  readonly usage: LineUsage
}

export type RecordedLine = LineAnswer & Pick<PendingLine, 'line'>

/** `closed`: the batch takes no more answers. */
export type Recorded = 'recorded' | 'known' | 'closed'

/** Null: the line has no answer. */
export type OutputLine = {
  readonly line: number
  readonly customId: string
  readonly answer: string | null
}

/** Which lines an output has. */
export type OutputKind = 'completed' | 'others' | 'all'

const outputRowsMax = 500

/** The lines of unfinished batches. */
export function createLineStore({ drizzle }: Pick<Database, 'drizzle'>) {
  return {
    /**
     * Adds lines, also a second time after the process died. Returns those whose custom id an earlier
     * line has.
     */
    async insert(batchId: string, lines: readonly NewLine[]): Promise<readonly number[]> {
      if (lines.length === 0) return []
      const given = sql`json_to_recordset(${JSON.stringify(lines)}::json) as given(line integer,
        slot smallint, "customId" text, "startByte" bigint, bytes integer)`
      await drizzle.execute(sql`
        insert into ${batchLine} (batch_id, line, slot, custom_id, start_byte, bytes)
        select ${batchId}, line, slot, "customId", "startByte", bytes from ${given}
        order by line on conflict do nothing`)
      const rows = await drizzle.execute<{ line: number }>(sql`
        select given.line from ${given} join ${batchLine} as taken
          on taken.batch_id = ${batchId} and taken.custom_id = given."customId"
        where taken.line <> given.line order by given.line`)
      return rows.map(({ line }) => line)
    },

    async slots(transaction: Transaction, batchId: string): Promise<readonly number[]> {
      const rows = await transaction.execute<{ slot: number }>(sql`
        select distinct slot from ${batchLine} where batch_id = ${batchId} order by slot`)
      return rows.map(({ slot }) => slot)
    },

    /** The first lines of a slot without an answer. */
    pending: (batchId: string, slot: number, countMax: number): Promise<readonly PendingLine[]> =>
      drizzle.execute<PendingLine>(sql`
        select line, custom_id as "customId", start_byte::float8 as "startByte", bytes
        from ${batchLine} where batch_id = ${batchId} and slot = ${slot}::smallint and answer is null
        order by line limit ${countMax}::integer`),

    /**
     * Records the answers of lines, each once: they count if and only if this commits. The last one begins
     * the end of the batch.
     */
    record: (
      batchId: string,
      lines: readonly RecordedLine[],
      given: { now: Date; addJob: (transaction: Transaction, id: string) => Promise<void> },
    ): Promise<(line: number) => Recorded> =>
      drizzle.transaction(async (transaction) => {
        // A batch that is cancelled meanwhile takes no answer after it has begun to write its outputs.
        const [locked] = await transaction.execute<{ status: string }>(sql`
          select status from ${batch} where id = ${batchId} for no key update`)
        if (locked?.status !== 'in_progress') return () => 'closed'
        const rows = lines.map(({ line, answer, outcome }) => ({ line, answer, outcome }))
        const answered = await transaction.execute<{ line: number }>(sql`
          update ${batchLine} set answer = given.answer, outcome = given.outcome
          from json_to_recordset(${JSON.stringify(rows)}::json)
            as given(line integer, answer text, outcome text)
          where batch_id = ${batchId} and ${batchLine.line} = given.line
            and ${batchLine.answer} is null
          returning ${batchLine.line} as line`)
        const recorded = new Set(answered.map(({ line }) => line))
        const recordedOf = (line: number) => (recorded.has(line) ? 'recorded' : 'known')
        const counts = countOf(lines.filter(({ line }) => recorded.has(line)))
        if (recorded.size === 0) return recordedOf
        const at = sql`${given.now.toISOString()}::timestamptz`
        const [counted] = await transaction.execute<{ isLast: boolean }>(sql`
          update ${batch} set completed = completed + ${counts.completed}::integer,
            failed = failed + ${counts.failed}::integer,
            input_tokens = input_tokens + ${counts.inputTokens}::bigint,
            cached_tokens = cached_tokens + ${counts.cachedTokens}::bigint,
            output_tokens = output_tokens + ${counts.outputTokens}::bigint,
            reasoning_tokens = reasoning_tokens + ${counts.reasoningTokens}::bigint
          where id = ${batchId} returning completed + failed = total as "isLast"`)
        if (counted?.isLast !== true) return recordedOf
        await transaction.execute(sql`
          update ${batch} set status = 'finalizing', ending = 'completed', finalizing_at = ${at}
          where id = ${batchId}`)
        await given.addJob(transaction, batchId)
        return recordedOf
      }),

    /** The next lines of an output, in order, until their answers exceed `charsMax`. */
    output: (
      batchId: string,
      { kind, after, charsMax }: { kind: OutputKind; after: number; charsMax: number },
    ): Promise<readonly OutputLine[]> => {
      const isIncluded = {
        completed: sql`outcome = 'completed'`,
        others: sql`outcome is distinct from 'completed'`,
        all: sql`true`,
      }[kind]
      return drizzle.execute<OutputLine>(sql`
        select line, custom_id as "customId", answer from (
          select line, custom_id, answer,
            sum(coalesce(octet_length(answer), 0)) over (order by line)
              - coalesce(octet_length(answer), 0) as before
          from (
            select line, custom_id, answer from ${batchLine}
            where batch_id = ${batchId} and line > ${after}::integer and ${isIncluded}
            order by line limit ${outputRowsMax}::integer) as found) as measured
        where before < ${charsMax}::bigint order by line`)
    },
  }
}

function countOf(lines: readonly RecordedLine[]) {
  const completed = lines.filter(({ outcome }) => outcome === 'completed').length
  const sum = (of: keyof LineUsage) => lines.reduce((total, { usage }) => total + usage[of], 0)
  return {
    completed,
    failed: lines.length - completed,
    inputTokens: sum('inputTokens'),
    cachedTokens: sum('cachedTokens'),
    outputTokens: sum('outputTokens'),
    reasoningTokens: sum('reasoningTokens'),
  }
}
