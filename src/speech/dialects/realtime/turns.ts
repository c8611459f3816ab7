import { newId } from '#lib/id.ts'
import type { UnsentFrame } from '#speech/session/server-frames.ts'

type Final = Extract<UnsentFrame, { type: 'transcript'; is_final: true }>

/** One turn of the speaker: an item of the conversation. */
type Item = {
  readonly id: string
  readonly startMs: number
  endMs: number
  text: string
  words: NonNullable<Final['words']>
  isAnnounced: boolean
  isCommitted: boolean
  /** The item before it in the conversation. */
  previousId: string | null
}

/** An event without its id. */
export type TurnEvent = { readonly type: string; readonly [field: string]: unknown }

/** Unanswered commits and clears; the session itself accepts as many. */
const pendingMax = 32

/**
 * Groups finals into turns. With turn detection a turn ends where the speaker pauses, without it where
 * the client commits; each commit and clear is a finalize request of the session, whose answer divides
 * the finals before it from those after it.
 */
export class Turns {
  detects: boolean
  includesLogprobs = false
  readonly #isBeta: () => boolean
  /** Commits and clears whose finals are outstanding, in order. */
  readonly #pending: (
    | { readonly type: 'clear' }
    | { readonly type: 'commit'; readonly item: Item }
  )[] = []
  #open: Item | null = null
  #lastItemId: string | null = null
  #isSpeaking = false
  /** Audio received, and how much of it the last commit or clear covered. */
  #audioMs = 0
  #committedMs = 0

  constructor(detects: boolean, isBeta: () => boolean) {
    this.detects = detects
    this.#isBeta = isBeta
  }

  /** Audio since the last commit or clear. */
  uncommittedMs(): number {
    return this.#audioMs - this.#committedMs
  }

  isFull(): boolean {
    return this.#pending.length >= pendingMax
  }

  onAudio(durationMs: number): void {
    this.#audioMs += durationMs
  }

  /** The client ends its turn. */
  commit(): TurnEvent[] {
    const item = this.#takeUnclaimed() ?? this.#newItem(this.#committedMs)
    item.endMs = this.#audioMs
    this.#committedMs = this.#audioMs
    this.#pending.push({ type: 'commit', item })
    return this.#commitItem(item)
  }

  /** The client discards what it has not committed. */
  clear(): TurnEvent[] {
    this.#committedMs = this.#audioMs
    this.#takeUnclaimed()
    this.#isSpeaking = false
    this.#pending.push({ type: 'clear' })
    return [{ type: 'input_audio_buffer.cleared' }]
  }

  onSpeechStart(atMs: number): TurnEvent[] {
    if (!this.detects || this.#pending[0]?.type === 'clear') return []
    return this.#open === null || !this.#isSpeaking ? this.#startTurn(atMs) : []
  }

  onFinal(final: Final): TurnEvent[] {
    const first = this.#pending[0]
    if (first?.type === 'clear') return []
    const events: TurnEvent[] = []
    const startMs = final.start * 1_000
    let item = first?.item ?? this.#open
    if (item === null) {
      if (this.detects) events.push(...this.#startTurn(startMs))
      item = this.#open ??= this.#newItem(this.#committedMs)
    }
    const delta = item.text === '' ? final.text : ` ${final.text}`
    item.text += delta
    item.endMs = Math.max(item.endMs, final.end * 1_000)
    const words = final.words ?? []
    if (this.includesLogprobs) item.words.push(...words)
    const endsTurn = this.detects && first === undefined && final.speech_final
    if (endsTurn) events.push(...this.#endSpeech(item), ...this.#commitItem(item))
    else events.push(...this.#announce(item))
    events.push({
      type: 'conversation.item.input_audio_transcription.delta',
      item_id: item.id,
      content_index: 0,
      delta,
      ...this.#logprobs(words),
    })
    if (endsTurn) events.push(...this.#complete(item))
    return events
  }

  /** All finals before a commit or clear have arrived. */
  onFinalized(): TurnEvent[] {
    const first = this.#pending.shift()
    return first?.type === 'commit' ? this.#complete(first.item) : []
  }

  /** The session has failed. */
  fail(error: { readonly code: string; readonly message: string }): TurnEvent[] {
    const committed = this.#pending.flatMap((each) => (each.type === 'commit' ? [each.item] : []))
    const items = this.#open?.isAnnounced ? [...committed, this.#open] : committed
    this.#pending.length = 0
    this.#open = null
    return items.map(({ id }) => ({
      type: 'conversation.item.input_audio_transcription.failed',
      item_id: id,
      content_index: 0,
      error: { type: 'transcription_error', ...error, param: null },
    }))
  }

  /** The open item, unless an earlier commit has claimed it. */
  #takeUnclaimed(): Item | null {
    const item = this.#open
    this.#open = null
    return item
  }

  #newItem(startMs: number): Item {
    return {
      id: newId('item_'),
      startMs,
      endMs: startMs,
      text: '',
      words: [],
      isAnnounced: false,
      isCommitted: false,
      previousId: null,
    }
  }

  #startTurn(atMs: number): TurnEvent[] {
    this.#open ??= this.#newItem(atMs)
    this.#isSpeaking = true
    const item_id = this.#open.id
    return [
      { type: 'input_audio_buffer.speech_started', audio_start_ms: Math.round(atMs), item_id },
    ]
  }

  #endSpeech({ id, endMs }: Item): TurnEvent[] {
    if (!this.#isSpeaking) return []
    this.#isSpeaking = false
    return [
      { type: 'input_audio_buffer.speech_stopped', audio_end_ms: Math.round(endMs), item_id: id },
    ]
  }

  #commitItem(item: Item): TurnEvent[] {
    if (item.isCommitted) return []
    item.isCommitted = true
    const speechEnd = this.detects ? this.#endSpeech(item) : []
    const announced = this.#announce(item)
    const previous_item_id = item.previousId
    const committed = { type: 'input_audio_buffer.committed', previous_item_id, item_id: item.id }
    const done = { type: 'conversation.item.done', previous_item_id, item: renderItem(item) }
    return [...speechEnd, committed, ...announced, ...(this.#isBeta() ? [] : [done])]
  }

  #announce(item: Item): TurnEvent[] {
    if (item.isAnnounced) return []
    item.isAnnounced = true
    item.previousId = this.#lastItemId
    this.#lastItemId = item.id
    const type = this.#isBeta() ? 'conversation.item.created' : 'conversation.item.added'
    return [{ type, previous_item_id: item.previousId, item: renderItem(item) }]
  }

  #complete(item: Item): TurnEvent[] {
    if (this.#open === item) this.#open = null
    return [
      {
        type: 'conversation.item.input_audio_transcription.completed',
        item_id: item.id,
        content_index: 0,
        transcript: item.text,
        usage: {
          type: 'duration',
          seconds: Math.max(0, Math.round(item.endMs - item.startMs)) / 1_000,
        },
        ...this.#logprobs(item.words),
      },
    ]
  }

  #logprobs(words: NonNullable<Final['words']>) {
    if (!this.includesLogprobs) return {}
    const known = words.flatMap(({ word, confidence }) =>
      confidence === null ? [] : [logprobOf(word, confidence)],
    )
    return { logprobs: known }
  }
}

/** JSON has no infinity. */
const probabilityMin = 1e-6

function logprobOf(word: string, confidence: number) {
  const logprob = Math.min(0, Math.log(Math.max(confidence, probabilityMin)))
  return { token: word, logprob, bytes: [...Buffer.from(word)] }
}

function renderItem({ id, isCommitted }: Item) {
  return {
    id,
    object: 'realtime.item',
    type: 'message',
    status: isCommitted ? 'completed' : 'in_progress',
    role: 'user',
    content: [{ type: 'input_audio', transcript: null }],
  }
}
