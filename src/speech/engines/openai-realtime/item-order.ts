import type { Word } from '#speech/engine.ts'
import type { ServerSession } from '#speech/engines/server-session.ts'
import { finalEvent } from '#speech/engines/words.ts'
import { appendDelta } from './realtime-audio.ts'

/** What is known about audio that we committed. */
export type ItemCommit = {
  readonly startMs: number | null
  readonly endMs: number | null
  /** Whether the speaker paused at its end. */
  readonly isInPause: boolean
}

type ItemResult = {
  readonly text: string
  readonly words: readonly Word[]
  readonly confidence: number | null
}

type Item = {
  readonly id: string
  text: string
  startMs: number | null
  endMs: number | null
  isStopped: boolean
  isCommitted: boolean
  isInPause: boolean
  result: ItemResult | null
}

/** Items that may wait for an earlier one. */
const itemsMax = 64

/**
 * Restores the order of a session's items. Servers transcribe several at once and return whichever
 * completes first; events are emitted one utterance after the other.
 */
export class ItemOrder {
  readonly #session: ServerSession
  /** Committed items first, in commit order; then the others in order of appearance. */
  #items: Item[] = []
  /** Ids of emitted items, so that late frames do not recreate them. */
  #emittedIds: string[] = []
  #shownText = ''

  constructor(session: ServerSession) {
    this.#session = session
  }

  /** Creates the item if it is new; an emitted item does not change. */
  update(id: string, changes: Partial<Item>): void {
    const item = this.#itemOf(id)
    if (item === null) return
    Object.assign(item, changes)
    this.#emitNext()
  }

  /** `commit`: our commit that was answered; null if the server detected the pause. */
  committed(id: string, previousId: string | null, commit: ItemCommit | null): void {
    const item = this.#itemOf(id)
    if (item === null || item.isCommitted) return
    item.isCommitted = true
    item.startMs ??= commit?.startMs ?? null
    item.endMs ??= commit?.endMs ?? null
    item.isInPause = commit?.isInPause ?? true
    const others = this.#items.filter((other) => other !== item)
    const previous = others.findIndex((other) => other.id === previousId && other.isCommitted)
    const firstOpen = others.findIndex((other) => !other.isCommitted)
    const end = firstOpen === -1 ? others.length : firstOpen
    this.#items = others.toSpliced(previous === -1 ? end : previous + 1, 0, item)
    this.#emitNext()
  }

  textGrew(id: string, delta: unknown): void {
    const item = this.#itemOf(id)
    if (item === null) return
    item.text = appendDelta(item.text, delta)
    this.#emitNext()
  }

  /** Whether the server has detected speech that no commit has closed. */
  isSpeechOpen(): boolean {
    return this.#items.some(
      (item) => !hasAllAudio(item) && (item.startMs !== null || item.text !== ''),
    )
  }

  /** An item that was not emitted yet. */
  find(id: string): Readonly<Item> | undefined {
    return this.#items.find((item) => item.id === id)
  }

  /** Items whose audio is complete and whose result has not been emitted. */
  outstanding(): ReadonlySet<string> {
    return new Set(this.#items.filter(hasAllAudio).map(({ id }) => id))
  }

  #itemOf(id: string): Item | null {
    if (this.#emittedIds.includes(id)) return null
    const known = this.find(id)
    if (known !== undefined) return known
    const item: Item = {
      id,
      text: '',
      startMs: null,
      endMs: null,
      isStopped: false,
      isCommitted: false,
      isInPause: true,
      result: null,
    }
    this.#items.push(item)
    if (this.#items.length > itemsMax) this.#session.fail('broken', 'an item was never completed')
    return item
  }

  #emitNext(): void {
    let first = this.#items[0]
    for (; first?.result != null; first = this.#items[0]) {
      this.#items.shift()
      this.#emittedIds = [...this.#emittedIds, first.id].slice(-itemsMax)
      this.#shownText = ''
      const { startMs, endMs, isInPause: speechFinal, result } = first
      this.#session.emit(finalEvent({ ...result, startMs, endMs, speechFinal }))
    }
    if (first === undefined) return
    const text = first.text.trim()
    if (text === '' || text === this.#shownText) return
    this.#shownText = text
    this.#session.emit({ type: 'partial', text, startMs: first.startMs, endMs: null })
  }
}

function hasAllAudio({ isStopped, isCommitted }: Item): boolean {
  return isStopped || isCommitted
}
