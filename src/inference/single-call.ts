import type { EventBatch, GenerationEvent } from './events.ts'
import type { Generate, GenerationJob } from './inference.ts'

/**
 * Generations that make no more than one tool call, where their request says so and the upstream
 * does not care: whatever begins after the first complete call is dropped, and the upstream ended.
 * One that obeys is left as it is, and tells its usage.
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
  // By now the upstream was told to end, before anybody may take their time with this.
  if (ending !== null) yield ending
}

/** What the upstream used is known where it was done already. */
function finishOf(batch: EventBatch): GenerationEvent {
  const last = batch.at(-1)
  const usage = last?.type === 'finish' ? last.usage : null
  return { type: 'finish', reason: 'tool-calls', rawReason: null, usage }
}
