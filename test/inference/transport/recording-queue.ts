import { ChunkQueue } from '#inference/transport/chunk-queue.ts'

/** A queue that records what its source is told. */
export class RecordingQueue extends ChunkQueue {
  readonly #told: string[]

  constructor(told: string[], options: ConstructorParameters<typeof ChunkQueue>[0]) {
    super(options)
    this.#told = told
  }

  protected pauseSource() {
    this.#told.push('pause')
  }

  protected resumeSource() {
    this.#told.push('resume')
  }

  protected stopSource() {
    this.#told.push('stop')
  }
}
