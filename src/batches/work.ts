import type { Config } from '#config/schema.ts'
import type { Database, Transaction } from '#db/client.ts'
import type { JobProcessor, Jobs, RunningJob } from '#jobs/jobs.ts'
import { followSignal } from '#lib/deadline.ts'
import { AppError, toAppError } from '#lib/errors.ts'
import { asRecord } from '#lib/json.ts'
import type { Log } from '#telemetry/log.ts'
import { type AnswerLineDeps, answerLine, BatchRefusedError } from './answer-line.ts'
import { failedAnswer } from './answers.ts'
import { type Batch, type BatchError, hasEnded, messagesPath, type PendingLine } from './batches.ts'
import { createLineRecorder } from './line-recorder.ts'
import type { LineAnswer, LineStore } from './line-store.ts'
import { type OutputDeps, writeOutputs } from './outputs.ts'
import type { BatchStore } from './store.ts'
import { validateInput } from './validate.ts'
import type { LineLimits } from './validate-line.ts'

export type BatchWorkDeps = Omit<AnswerLineDeps, 'retriesMax'> &
  Omit<OutputDeps, 'store' | 'lines' | 'config' | 'storage'> & {
    store: BatchStore
    lines: LineStore
    storage: AnswerLineDeps['storage'] & OutputDeps['storage']
    jobs: Pick<Jobs, 'add' | 'process'>
    database: Pick<Database, 'drizzle' | 'listen' | 'notify'>
    config: OutputDeps['config'] & {
      batches: Config['batches']
      limits: LineLimits
    }
    /** In the transaction that ends a batch. */
    announceEnd: (transaction: Transaction, ended: Batch) => Promise<void>
    onAnswered: (batch: Batch, answer: LineAnswer) => void
    onEnded: (batch: Batch) => void
    log: Pick<Log, 'info' | 'warn'>
    now: () => Date
  }

/** One job per batch: validates its input, and writes its outputs. */
const batchQueue = 'batch'
/** One job per slot of a batch: answers its lines, one after the other. */
const slotQueue = 'batch_lines'
const channel = 'batches'
const batchesAtOnceMax = 2
/** Lines after which a slot lets the slots of other batches run. */
const linesPerTurn = 8
/** Of a batch job, with backoff up to ten minutes: storage and database may be unavailable for hours. */
const batchAttemptsMax = 40
/** Of a slot, without an answer in between. */
const slotAttemptsMax = 10
const linesPerDeletion = 2_000

const closed = new AppError('client_closed', 'The batch takes no more answers.')

export type BatchWork = ReturnType<typeof createBatchWork>

/** Runs batches: any worker may take any part of one. */
export function createBatchWork(deps: BatchWorkDeps) {
  const { store, lines, jobs, log, now, config } = deps
  /** The work in progress of this worker, by batch. */
  const running = new Map<string, Set<AbortController>>()
  let linesRunning = 0
  let processors: readonly JobProcessor[] = []
  let isDraining = false

  const addBatchJob = (transaction: Transaction, id: string) =>
    jobs.add(transaction, { queue: batchQueue, key: id, payload: { id } })

  /** Stops the lines of a batch that has been closed, in this worker. */
  const stopLines = (id: string) => {
    for (const controller of running.get(id) ?? []) controller.abort(closed)
  }
  const announceClosed = async (id: string) => {
    stopLines(id)
    await deps.database.notify(channel, id).catch((error: unknown) => {
      log.warn('batch notification failed', { error })
    })
  }

  const recordLine = createLineRecorder((id, answered) =>
    lines.record(id, answered, { now: now(), addJob: addBatchJob }),
  )

  const addSlotJob = (transaction: Transaction, { id, ownerId }: Batch, slot: number) =>
    jobs.add(transaction, {
      queue: slotQueue,
      key: `${id}/${slot}`,
      lane: ownerId,
      payload: { id, slot },
    })

  async function validate(batch: Batch, signal: AbortSignal): Promise<void> {
    const { errors, total, model } = await validateInput(deps, batch, signal)
    if (errors.length > 0) {
      await store.beginFailure(batch.id, { errors, total, addJob: addBatchJob, now: now() })
      return
    }
    await store.begin(batch.id, {
      total,
      model,
      now: now(),
      async addJobs(transaction) {
        for (const slot of await lines.slots(transaction, batch.id)) {
          await addSlotJob(transaction, batch, slot)
        }
      },
    })
  }

  async function finish(batch: Batch, signal: AbortSignal): Promise<void> {
    const isMessages = batch.endpoint === messagesPath
    const hasLines = batch.inProgressAt !== null
    // The results of messages name every request, also of a batch that was cancelled at once.
    if (isMessages && !hasLines) await validateInput(deps, batch, signal)
    if (isMessages || hasLines) await writeOutputs(deps, batch, signal)
    await end(batch.id)
  }

  async function end(id: string, failure?: BatchError): Promise<void> {
    const ended = await store.end(id, {
      now: now(),
      announce: deps.announceEnd,
      ...(failure === undefined ? {} : { failure }),
    })
    if (ended === undefined) return
    deps.onEnded(ended)
    const { ownerId, keyId, requestId, endpoint, status, total, completed, failed } = ended
    log.info('batch ended', {
      batch_id: id,
      request_id: requestId,
      user_id: ownerId,
      key_id: keyId,
      endpoint,
      status,
      lines: total,
      completed,
      failed,
      duration_ms: now().getTime() - ended.createdAt.getTime(),
    })
  }

  /** Each step begins from the database, so any worker can do the next one. */
  async function runBatch({ payload, signal }: RunningJob): Promise<void> {
    const id = String(asRecord(payload)['id'])
    for (;;) {
      const batch = await store.findById(id)
      if (batch === undefined) return
      signal.throwIfAborted()
      if (batch.status === 'validating') await validate(batch, signal)
      else if (batch.status === 'in_progress') return
      else if (!hasEnded(batch)) await finish(batch, signal)
      else {
        while (await store.dropLines(id, linesPerDeletion)) signal.throwIfAborted()
        return
      }
    }
  }

  async function failBatch({ payload }: RunningJob, error: unknown): Promise<void> {
    const id = String(asRecord(payload)['id'])
    const failure = errorOf(error)
    await store.beginFailure(id, { errors: [failure], addJob: addBatchJob, now: now() })
    await end(id, failure)
  }

  /** False: the batch takes no more answers. */
  async function answer(
    batch: Batch,
    line: PendingLine,
    given: { signal: AbortSignal; trace: RunningJob['trace'] },
  ): Promise<boolean> {
    linesRunning++
    try {
      const { retriesMax } = config.batches
      const answered = await answerLine({ ...deps, retriesMax }, batch, line, given)
      return await record(batch, line, answered)
    } catch (error) {
      if (!(error instanceof BatchRefusedError)) throw error
      const errors = [errorOf(error.reason)]
      const began = { errors, addJob: addBatchJob, now: now() }
      if (await store.beginFailure(batch.id, began)) await announceClosed(batch.id)
      return false
    } finally {
      linesRunning--
    }
  }

  async function record(batch: Batch, { line }: PendingLine, answered: LineAnswer) {
    const recorded = await recordLine(batch.id, { ...answered, line })
    if (recorded === 'recorded') deps.onAnswered(batch, answered)
    return recorded !== 'closed'
  }

  async function runSlot({ payload, trace, signal: jobSignal }: RunningJob): Promise<void> {
    const { id, slot } = readSlot(payload)
    const batch = await store.findById(id)
    if (batch?.status !== 'in_progress') return
    const { controller, release } = followSignal(jobSignal)
    const { signal } = controller
    const ofBatch = running.get(id) ?? new Set()
    running.set(id, ofBatch.add(controller))
    try {
      const pending = await lines.pending(id, slot, linesPerTurn)
      for (const line of pending) {
        signal.throwIfAborted()
        if (isDraining) throw new Error('this worker answers no more lines')
        if (!(await answer(batch, line, { signal, trace }))) return
      }
      if (pending.length < linesPerTurn) return
      // It runs again after this turn.
      await deps.database.drizzle.transaction((transaction) => addSlotJob(transaction, batch, slot))
    } catch (error) {
      if (signal.reason !== closed) throw error
    } finally {
      release()
      ofBatch.delete(controller)
      if (ofBatch.size === 0) running.delete(id)
    }
  }

  /** A line whose answer ends every worker is given up, so that the others are answered. */
  async function failLine({ payload }: RunningJob, error: unknown): Promise<void> {
    const { id, slot } = readSlot(payload)
    const batch = await store.findById(id)
    const [line] = await lines.pending(id, slot, 1)
    if (batch?.status !== 'in_progress' || line === undefined) return
    const answered = { customId: line.customId, requestId: batch.requestId }
    await record(batch, line, failedAnswer(batch, answered, toAppError(error)))
    await deps.database.drizzle.transaction((transaction) => addSlotJob(transaction, batch, slot))
  }

  return {
    addBatchJob,
    announceClosed,
    linesRunning: () => linesRunning,
    /** Starts to run batches in this worker. */
    async process() {
      await deps.database.listen(channel, {
        onMessage: stopLines,
        // A closed batch is also noticed when an answer is recorded.
        onGap() {},
      })
      if (isDraining) return
      const { runningMax, perOwnerMax } = config.batches
      processors = [
        jobs.process(batchQueue, {
          concurrencyMax: batchesAtOnceMax,
          attemptsMax: batchAttemptsMax,
          run: runBatch,
          onFailed: failBatch,
        }),
        jobs.process(slotQueue, {
          concurrencyMax: runningMax,
          laneJobsMax: perOwnerMax,
          attemptsMax: slotAttemptsMax,
          run: runSlot,
          onFailed: failLine,
        }),
      ]
    },
    /** Answers no more lines; those in progress continue. */
    drain() {
      isDraining = true
      for (const processor of processors) processor.stop()
    },
  }
}

function readSlot(payload: unknown): { id: string; slot: number } {
  const { id, slot } = asRecord(payload)
  return { id: String(id), slot: Number(slot) }
}

function errorOf(error: unknown): BatchError {
  const { wireCode: code, message, param } = toAppError(error)
  return { code, message, param, line: null }
}
