import type { FrameSource } from '#http/event-stream.ts'
import type { EventBatch } from '#inference/events.ts'
import type { EventBatches, GenerationJob } from '#inference/generate.ts'
import { followSignal } from '#lib/deadline.ts'
import { AppError } from '#lib/errors.ts'
import type { Log } from '#telemetry/log.ts'

/** What makes an answer of the events of one generation: frames, or the object they add up to. */
type AnswerRenderer<Answer> = {
  push(batch: EventBatch): string
  open(): string
  heartbeat(): string
  fail(error: AppError): string
  result(): Answer
}

type Options<Answer> = {
  generate: (control: Pick<GenerationJob, 'signal' | 'committed'>) => EventBatches
  renderer: AnswerRenderer<Answer>
  /** Of the connection. */
  signal: AbortSignal
  requestId: string
  log: Pick<Log, 'error'>
}

/**
 * A generation that lives and ends with its connection, at its reader's pace. One of the two is
 * called, once; the second throws where the generation fails.
 */
export type RunningGeneration<Answer> = {
  source(): FrameSource<EventBatch>
  answer(): Promise<Answer>
}

export function runGeneration<Answer>(options: Options<Answer>): RunningGeneration<Answer> {
  const { renderer, log, requestId } = options
  const { controller } = followSignal(options.signal)
  const { signal } = controller
  let committed = false
  const batches = options.generate({ signal, committed: () => committed })
  // What nobody pulls is suspended, where an abort alone does not reach it.
  const end = () => void batches.return().catch(() => {})
  signal.addEventListener('abort', end, { once: true })
  return {
    source: () => ({
      items: batches,
      render: renderer.push,
      fail(error) {
        // A generation that fails tells it by an event and its own record; this is a fault of ours.
        if (error.kind === 'internal_error') {
          log.error('a stream failed', { request_id: requestId, cause: error.cause })
        }
        return renderer.fail(error)
      },
      life: { open: renderer.open, heartbeat: renderer.heartbeat },
      commit() {
        committed = true
      },
      abandon: () => controller.abort(new AppError('client_closed', 'The reader has gone.')),
    }),
    answer: () => fold(batches, renderer),
  }
}

/** The answer without streaming is the folded stream, so the two cannot differ. */
async function fold<Answer>(
  batches: AsyncIterable<EventBatch>,
  renderer: AnswerRenderer<Answer>,
): Promise<Answer> {
  for await (const batch of batches) {
    renderer.push(batch)
    const last = batch.at(-1)
    // Nothing was sent yet, so a failure in the middle is still an HTTP status.
    if (last?.type === 'error') throw last.error
  }
  return renderer.result()
}
