import { consume } from '#lib/pull-iterator.ts'
import { endedEarly } from './decode-errors.ts'
import { type EventBatch, joinRelays, withRelay } from './events.ts'

/** The start of a generation: its batches up to the first output as one, and the iterator of the others. */
type FirstOutput = {
  readonly batch: EventBatch
  readonly batches: AsyncIterator<EventBatch>
}

/** Reads up to the first batch with output. */
export function readFirstOutput(batches: AsyncIterator<EventBatch>): Promise<FirstOutput> {
  let batch: EventBatch = []
  let hasOutput = false
  return consume(batches, {
    take(next) {
      // Mostly the first batch has output, and is not copied.
      const isFirst = batch.length === 0 && batch.relay === undefined
      batch = isFirst ? next : joinBatches(batch, next)
      hasOutput = next.some(({ type }) => type !== 'generation-start')
      return !hasOutput
    },
    result() {
      if (!hasOutput) throw endedEarly()
      return { batch, batches }
    },
  })
}

function joinBatches(one: EventBatch, next: EventBatch): EventBatch {
  return withRelay([...one, ...next], joinRelays(one.relay, next.relay))
}
