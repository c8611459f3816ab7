import { AppError } from '#lib/errors.ts'
import { type Consumption, consume } from '#lib/pull-iterator.ts'
import { type EventBatch, joinRelays, withRelay } from './events.ts'

/** The start of a generation: its batches up to the first output as one, and the iterator of the others. */
export type FirstOutput = {
  readonly batch: EventBatch
  readonly batches: AsyncIterator<EventBatch>
}

/** Reads up to the first batch with output. */
export function readFirstOutput(batches: AsyncIterator<EventBatch>): Promise<FirstOutput> {
  return consume(batches, new OutputStart(batches))
}

class OutputStart implements Consumption<EventBatch, FirstOutput>, FirstOutput {
  readonly batches: AsyncIterator<EventBatch>
  batch: EventBatch = []

  constructor(batches: AsyncIterator<EventBatch>) {
    this.batches = batches
  }

  take(batch: EventBatch): boolean {
    const isFirst = this.batch.length === 0 && this.batch.relay === undefined
    this.batch = isFirst ? batch : joinBatches(this.batch, batch)
    return !hasOutput(batch)
  }

  result(): FirstOutput {
    if (!hasOutput(this.batch)) throw endedEarly()
    return this
  }
}

function hasOutput(batch: EventBatch): boolean {
  return batch.some((event) => event.type !== 'generation-start')
}

function joinBatches(one: EventBatch, next: EventBatch): EventBatch {
  return withRelay([...one, ...next], joinRelays(one.relay, next.relay))
}

export function endedEarly(): AppError {
  return new AppError(
    'upstream_truncated',
    'The upstream ended its response before it was complete.',
  )
}
