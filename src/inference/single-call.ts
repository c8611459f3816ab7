import {
  type EventBatch,
  type FinishReason,
  type GenerationEvent,
  reportedUsage,
} from './events.ts'
import type { Generate } from './inference.ts'

/**
 * Enforces `parallelToolCalls: false` for upstreams that ignore it: the generation ends after its first
 * complete call. Usage is only known if the upstream had finished.
 */
export function withSingleCall(generate: Generate): Generate {
  return (job) =>
    job.request.parallelToolCalls || job.request.tools.length === 0
      ? generate(job)
      : endEarly(generate(job), createScan)
}

function createScan(): (batch: EventBatch) => ScanResult {
  let hasCalled = false
  return (batch) => {
    for (const [at, event] of batch.entries()) {
      if (hasCalled && event.type.endsWith('-start')) {
        return { events: [...batch.slice(0, at), finishEarly(batch, 'tool-calls')], isEnd: true }
      }
      if (event.type === 'tool-call-end') hasCalled = true
    }
    return { events: batch, isEnd: false }
  }
}

/** The events to emit for a batch, and whether the generation ends with them. */
export type ScanResult = { readonly events: EventBatch; readonly isEnd: boolean }

/** Ends a generation at a batch. The scan is created, and may throw, at the first pull. */
export async function* endEarly(
  batches: AsyncIterable<EventBatch>,
  startScan: () => (batch: EventBatch) => ScanResult,
): AsyncGenerator<EventBatch, void, void> {
  const scan = startScan()
  let ending: EventBatch | null = null
  for await (const batch of batches) {
    const { events, isEnd } = scan(batch)
    if (isEnd) {
      ending = events
      break
    }
    if (events.length > 0 || events.relay !== undefined) yield events
  }
  // The upstream request has ended before the last batch is emitted: the reader may be slow.
  if (ending !== null) yield ending
}

/** The usage is known if the upstream had finished. */
export function finishEarly(
  batch: EventBatch,
  reason: FinishReason,
  stopSequence?: string,
): GenerationEvent {
  const usage = reportedUsage(batch)
  const sequence = stopSequence === undefined ? {} : { stopSequence }
  return { type: 'finish', reason, rawReason: null, usage, ...sequence }
}
