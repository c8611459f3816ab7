import type { LineStore, Recorded, RecordedLine } from './line-store.ts'

/** Answers that one transaction records. */
const linesAtOnceMax = 64
const charsAtOnceMax = 8_388_608

type Waiting = {
  readonly line: RecordedLine
  readonly resolve: (recorded: Recorded) => void
  readonly reject: (error: unknown) => void
}

/**
 * Records answers in groups: all that arrived while the previous transaction of their batch ran. A batch
 * uses one connection of this worker at a time, however many of its lines run; its counts are in one
 * row, on which the transactions of single lines would wait.
 */
export function createLineRecorder(
  write: (batchId: string, lines: readonly RecordedLine[]) => ReturnType<LineStore['record']>,
): (batchId: string, line: RecordedLine) => Promise<Recorded> {
  /** By batch; present while a transaction of it runs. */
  const queues = new Map<string, Waiting[]>()

  async function drain(batchId: string, queue: Waiting[]): Promise<void> {
    while (queue.length > 0) {
      const group = queue.splice(0, groupLength(queue))
      try {
        const recorded = await write(
          batchId,
          group.map(({ line }) => line),
        )
        for (const { line, resolve } of group) resolve(recorded(line.line))
      } catch (error) {
        for (const { reject } of group) reject(error)
      }
    }
    queues.delete(batchId)
  }

  return (batchId, line) =>
    new Promise((resolve, reject) => {
      const waiting = { line, resolve, reject }
      const running = queues.get(batchId)
      if (running !== undefined) {
        running.push(waiting)
        return
      }
      const queue = [waiting]
      queues.set(batchId, queue)
      void drain(batchId, queue)
    })
}

/** At least one. */
function groupLength(queue: readonly Waiting[]): number {
  let chars = 0
  for (const [at, { line }] of queue.entries()) {
    chars += line.answer.length
    if (at > 0 && (at === linesAtOnceMax || chars > charsAtOnceMax)) return at
  }
  return queue.length
}
