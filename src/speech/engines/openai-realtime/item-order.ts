import type { EngineEvent, Word } from '#speech/engine.ts'
import { growText } from './realtime-frames.ts'

/**
 * The items of a session in the order of their audio. Servers transcribe several at once and answer
 * whichever is done first; what is told is one utterance after the other.
 */
export type ItemOrder = {
  started(id: string, startMs: number | null): void
  stopped(id: string, endMs: number | null): void
  /** `commit` is the one of ours that was answered; null where the server found the pause. */
  committed(id: string, previousId: string | null, commit: ItemCommit | null): void
  grew(id: string, delta: unknown): void
  settled(id: string, answer: ItemAnswer): void
  /** Whether the server has heard speech begin that no commit has closed. */
  isSpeechOpen(): boolean
  hasStopped(id: string): boolean
  /** The items whose audio is complete and whose answer has not been told. */
  awaited(): ReadonlySet<string>
  /** Where the audio of an item ends, as far as known. */
  endOf(id: string): number | null
}

/** What we know of the audio that we closed. */
export type ItemCommit = {
  readonly startMs: number | null
  readonly endMs: number | null
  /** Whether the speaker paused where it ends. */
  readonly inPause: boolean
}

type ItemAnswer = {
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
  inPause: boolean
  answer: ItemAnswer | null
}

type ItemEvent = Extract<EngineEvent, { type: 'partial' | 'final' | 'utterance-dropped' }>

type ItemOrderOptions = {
  readonly emit: (event: ItemEvent) => void
  /** An item behind which nothing more can wait. */
  readonly overflowed: () => void
}

/** Items that may wait for one before them. */
const itemsMax = 64

export function createItemOrder(options: ItemOrderOptions): ItemOrder {
  return new Items(options)
}

class Items implements ItemOrder {
  readonly #options: ItemOrderOptions
  /** Committed ones first, in the order of their commits; the others as they were first named. */
  #items: Item[] = []
  /** Ids that were told, so that a late word about one does not make it anew. */
  #told: string[] = []
  #shownText = ''

  constructor(options: ItemOrderOptions) {
    this.#options = options
  }

  started(id: string, startMs: number | null): void {
    const item = this.#itemOf(id)
    if (item !== null) item.startMs = startMs
  }

  stopped(id: string, endMs: number | null): void {
    const item = this.#itemOf(id)
    if (item === null) return
    item.isStopped = true
    item.endMs = endMs
  }

  committed(id: string, previousId: string | null, commit: ItemCommit | null): void {
    const item = this.#itemOf(id)
    if (item === null || item.isCommitted) return
    item.isCommitted = true
    item.startMs ??= commit?.startMs ?? null
    item.endMs ??= commit?.endMs ?? null
    item.inPause = commit?.inPause ?? true
    const others = this.#items.filter((other) => other !== item)
    const previous = others.findIndex((other) => other.id === previousId && other.isCommitted)
    const firstOpen = others.findIndex((other) => !other.isCommitted)
    const end = firstOpen === -1 ? others.length : firstOpen
    this.#items = others.toSpliced(previous === -1 ? end : previous + 1, 0, item)
    this.#tell()
  }

  grew(id: string, delta: unknown): void {
    const item = this.#itemOf(id)
    if (item === null) return
    item.text = growText(item.text, delta)
    this.#tell()
  }

  settled(id: string, answer: ItemAnswer): void {
    const item = this.#itemOf(id)
    if (item === null) return
    item.answer = answer
    this.#tell()
  }

  isSpeechOpen(): boolean {
    return this.#items.some(
      (item) => !isComplete(item) && (item.startMs !== null || item.text !== ''),
    )
  }

  hasStopped(id: string): boolean {
    return this.#items.find((item) => item.id === id)?.isStopped ?? false
  }

  awaited(): ReadonlySet<string> {
    return new Set(this.#items.filter(isComplete).map(({ id }) => id))
  }

  endOf(id: string): number | null {
    return this.#items.find((item) => item.id === id)?.endMs ?? null
  }

  #itemOf(id: string): Item | null {
    if (this.#told.includes(id)) return null
    const known = this.#items.find((item) => item.id === id)
    if (known !== undefined) return known
    const item: Item = {
      id,
      text: '',
      startMs: null,
      endMs: null,
      isStopped: false,
      isCommitted: false,
      inPause: true,
      answer: null,
    }
    this.#items.push(item)
    if (this.#items.length > itemsMax) this.#options.overflowed()
    return item
  }

  #tell(): void {
    let head = this.#items[0]
    for (; head?.answer != null; head = this.#items[0]) {
      this.#items.shift()
      this.#told = [...this.#told, head.id].slice(-itemsMax)
      this.#shownText = ''
      this.#options.emit(eventOf(head, head.answer))
    }
    if (head !== undefined) this.#show(head)
  }

  #show({ text, startMs }: Item): void {
    const shown = text.trim()
    if (shown === '' || shown === this.#shownText) return
    this.#shownText = shown
    this.#options.emit({ type: 'partial', text: shown, startMs, endMs: null })
  }
}

function eventOf(
  { startMs, endMs, inPause }: Item,
  { text, words, confidence }: ItemAnswer,
): ItemEvent {
  if (text === '') return { type: 'utterance-dropped' }
  const from = words[0]?.startMs ?? startMs
  const to = words.at(-1)?.endMs ?? endMs
  // Times of different origin need not agree.
  const isOrdered = from === null || to === null || from <= to
  const times = { startMs: from, endMs: isOrdered ? to : from }
  return { type: 'final', text, ...times, words, confidence, speechFinal: inPause }
}

function isComplete({ isStopped, isCommitted }: Item): boolean {
  return isStopped || isCommitted
}
