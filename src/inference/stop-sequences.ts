import { AppError } from '#lib/errors.ts'
import { asRecord } from '#lib/json.ts'
import {
  changedFrame,
  type EventBatch,
  type GenerationEvent,
  type RelayFrame,
  withRelay,
} from './events.ts'
import type { Generate } from './inference.ts'
import { endEarly, finishEarly, type ScanResult } from './single-call.ts'
import { estimateTextTokens } from './token-estimate.ts'
import { readString } from './upstream-fields.ts'

/** All stop sequences of a request together: the automaton grows with their length. */
const sequenceCharsMax = 16_384

/**
 * Ends generations before their first stop sequence, whether the upstream supports them or not. The
 * sequence that completes first wins; of several, the longest. Only text that may be the start of a
 * sequence is held back. The upstream request ends at a match, so its usage is usually unknown.
 *
 * Only response text is searched, each block separately. Relayed frames are cut at the same place, for
 * upstreams that ignore the sequences.
 */
export function withStopSequences(generate: Generate): Generate {
  return (job) => {
    const { stopSequences } = job.request.sampling
    if (stopSequences.length === 0) return generate(job)
    return endEarly(generate({ ...job, streamed: true }), () => createScan(stopSequences))
  }
}

/** Scans one generation: its events, and beside them its relayed frames. */
function createScan(sequences: readonly string[]): (batch: EventBatch) => ScanResult {
  const automaton = buildAutomaton(sequences)
  const text = new TextScan(automaton)
  const frames = new FrameScan(new TextScan(automaton))
  /** The open text block, if it is response text. */
  let block: number | null = null

  const scanEvents = (batch: EventBatch): ScanResult => {
    const out: GenerationEvent[] = []
    const emit = (piece: string) => {
      if (piece !== '' && block !== null) out.push({ type: 'text-delta', block, text: piece })
    }
    for (const event of batch) {
      if (event.type === 'text-delta' && event.block === block) {
        const piece = text.push(event.text)
        if (piece === event.text && text.matched === null) out.push(event)
        else emit(piece)
        if (text.matched === null) continue
        out.push({ type: 'text-end', block, complete: true })
        out.push(finishEarly(batch, 'stop-sequence', text.matched))
        return { events: out, isEnd: true }
      }
      if (event.type === 'text-start') block = event.form === 'answer' ? event.block : null
      if (event.type === 'text-end') {
        emit(text.flush())
        block = null
      }
      out.push(event)
    }
    return { events: out, isEnd: false }
  }
  return (batch) => {
    const { events, isEnd } = scanEvents(batch)
    const { relay } = batch
    if (relay === undefined) return { events, isEnd }
    const scanned = { ...relay, frames: frames.scan(relay.frames) }
    return { events: withRelay([...events], scanned), isEnd }
  }
}

/** Finds the first stop sequence in the texts of one block after the other. */
class TextScan {
  readonly #automaton: Automaton
  #state = start
  /** The end of the text, which may be the start of a sequence. */
  #held = ''
  /** The sequence that ended the text. */
  matched: string | null = null

  constructor(automaton: Automaton) {
    this.#automaton = automaton
  }

  /** Adds text; returns what can be emitted of it and of held text. */
  push(text: string): string {
    const automaton = this.#automaton
    for (let at = 0; at < text.length; at++) {
      this.#state = automaton.step(this.#state, text.charCodeAt(at))
      const matchedChars = automaton.matchedChars(this.#state)
      if (matchedChars === 0) continue
      const all = this.#held + text.slice(0, at + 1)
      this.matched = all.slice(all.length - matchedChars)
      return all.slice(0, all.length - matchedChars)
    }
    const depth = automaton.depth(this.#state)
    if (depth === 0 && this.#held === '') return text
    const all = this.#held + text
    this.#held = all.slice(all.length - depth)
    return all.slice(0, all.length - depth)
  }

  /** Ends the block; returns the held text. */
  flush(): string {
    const held = this.#held
    this.#held = ''
    this.#state = start
    return held
  }
}

/** Cuts the relayed frames of a Messages stream at the first stop sequence, and ends them there. */
class FrameScan {
  readonly #text: TextScan
  /** The index of the open text block. */
  #index: unknown = null
  #written = ''

  constructor(text: TextScan) {
    this.#text = text
  }

  scan(frames: readonly RelayFrame[]): RelayFrame[] {
    const out: RelayFrame[] = []
    for (const frame of frames) {
      if (this.#text.matched !== null) break
      const { type, index } = frame.payload
      const delta = asRecord(frame.payload['delta'])
      if (type === 'content_block_start') {
        const isText = asRecord(frame.payload['content_block'])['type'] === 'text'
        this.#index = isText ? index : null
      } else if (delta['type'] === 'text_delta' && this.#index !== null) {
        this.#scanText(frame, readString(delta['text']), out)
        continue
      } else if (type === 'content_block_stop') {
        this.#emit(this.#text.flush(), out)
        this.#index = null
      }
      out.push(frame)
    }
    if (this.#text.matched !== null) this.#end(this.#text.matched, frames, out)
    return out
  }

  #scanText(frame: RelayFrame, text: string, out: RelayFrame[]) {
    const piece = this.#text.push(text)
    this.#written += piece
    if (piece === text && this.#text.matched === null) out.push(frame)
    else this.#emit(piece, out)
  }

  #emit(text: string, out: RelayFrame[]) {
    if (text === '') return
    const delta = { type: 'text_delta', text }
    out.push(changedFrame({ type: 'content_block_delta', index: this.#index, delta }))
  }

  #end(stopSequence: string, frames: readonly RelayFrame[], out: RelayFrame[]) {
    const last = frames.find(({ payload }) => payload['type'] === 'message_delta')
    const delta = { stop_reason: 'stop_sequence', stop_sequence: stopSequence }
    const usage = last?.payload['usage'] ?? { output_tokens: estimateTextTokens(this.#written) }
    out.push(
      changedFrame({ type: 'content_block_stop', index: this.#index }),
      changedFrame({ type: 'message_delta', delta, usage }),
      changedFrame({ type: 'message_stop' }),
    )
  }
}

/** Finds any of several sequences in one pass. */
type Automaton = {
  /** The state after one more UTF-16 code unit. */
  step(state: number, code: number): number
  /** The length of the longest suffix that may become a sequence. */
  depth(state: number): number
  /** The length of the longest sequence at the end of the text; 0 for none. */
  matchedChars(state: number): number
}

const start = 0
const codesPerState = 0x1_0000

/**
 * The Aho–Corasick automaton: a trie of the sequences with a fallback per state, the longest proper
 * suffix of its text that is a prefix of a sequence.
 */
function buildAutomaton(sequences: readonly string[]): Automaton {
  const next = new Map<number, number>()
  const depths = [0]
  const matched = [0]
  const child = (state: number, code: number) => next.get(state * codesPerState + code)
  // A lone surrogate must not match half a character.
  const sequencesToFind = sequences.filter((text) => text !== '' && text.isWellFormed())
  refuseTooLong(sequencesToFind)
  for (const sequence of sequencesToFind) {
    let state = start
    for (let at = 0; at < sequence.length; at++) {
      const code = sequence.charCodeAt(at)
      const known = child(state, code)
      if (known === undefined) {
        next.set(state * codesPerState + code, depths.length)
        depths.push(at + 1)
        matched.push(0)
      }
      state = known ?? depths.length - 1
    }
    matched[state] = sequence.length
  }
  const fallbacks = linkFallbacks(next, { depths, matched })
  return {
    step(state, code) {
      for (let from = state; ; from = fallbacks[from] ?? start) {
        const to = child(from, code)
        if (to !== undefined) return to
        if (from === start) return start
      }
    },
    depth: (state) => depths[state] ?? 0,
    matchedChars: (state) => matched[state] ?? 0,
  }
}

/** Computes fallbacks in order of depth: state numbers are not sorted by depth. */
function linkFallbacks(
  next: ReadonlyMap<number, number>,
  { depths, matched }: { depths: readonly number[]; matched: number[] },
): number[] {
  const fallbacks: number[] = depths.map(() => start)
  const edges = [...next].map(([key, to]) => ({
    from: Math.floor(key / codesPerState),
    code: key % codesPerState,
    to,
  }))
  edges.sort((one, other) => (depths[one.to] ?? 0) - (depths[other.to] ?? 0))
  for (const { from, code, to } of edges) {
    if (from === start) continue
    let back = fallbacks[from] ?? start
    while (back !== start && !next.has(back * codesPerState + code)) back = fallbacks[back] ?? start
    const fallback = next.get(back * codesPerState + code) ?? start
    fallbacks[to] = fallback
    if (matched[to] === 0) matched[to] = matched[fallback] ?? 0
  }
  return fallbacks
}

function refuseTooLong(sequences: readonly string[]): void {
  const chars = sequences.reduce((sum, { length }) => sum + length, 0)
  if (chars <= sequenceCharsMax) return
  throw new AppError(
    'invalid_request',
    `The stop sequences together are longer than ${sequenceCharsMax} characters.`,
    { param: 'stop_sequences' },
  )
}
