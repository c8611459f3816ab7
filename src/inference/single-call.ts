import type { EventBatch, GenerationEvent } from './events.ts'
import type { Generate, GenerationJob } from './inference.ts'

/**
 * Enforces `parallelToolCalls: false` for upstreams that ignore it: the generation ends after its first
 * complete call. Usage is only known if the upstream had finished.
 */
export function withSingleCall(generate: Generate): Generate {
  return (job) =>
    job.request.parallelToolCalls || job.request.tools.length === 0
      ? generate(job)
      : generateToFirstCall(generate, job)
}

async function* generateToFirstCall(
  generate: Generate,
  job: GenerationJob,
): AsyncGenerator<EventBatch, void, void> {
  let hasCalled = false
  let ending: EventBatch | null = null
  for await (const batch of generate(job)) {
    for (const [at, event] of batch.entries()) {
      if (hasCalled && event.type.endsWith('-start')) {
        ending = [...batch.slice(0, at), finishOf(batch)]
        break
      }
      if (event.type === 'tool-call-end') hasCalled = true
    }
    if (ending !== null) break
    yield batch
  }
  // The upstream request has ended before the last batch is emitted: the reader may be slow.
  if (ending !== null) yield ending
}

/** The usage is known if the upstream had finished. */
function finishOf(batch: EventBatch): GenerationEvent {
  const last = batch.at(-1)
  const usage = last?.type === 'finish' ? last.usage : null
  return { type: 'finish', reason: 'tool-calls', rawReason: null, usage }
}
