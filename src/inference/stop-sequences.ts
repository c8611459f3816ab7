import { AppError } from '#lib/errors.ts'
import type { EventBatch, GenerationEvent } from './events.ts'
import type { Generate } from './inference.ts'
import { endEarly, finishEarly, type ScanResult } from './single-call.ts'

/** All stop sequences of a request together: the automaton grows with their length. */
const sequenceCharsMax = 16_384

/**
 * Ends generations before their first stop sequence, whether the upstream supports them or not. The
 * sequence that completes first wins; of several, the longest. Only text that may be the start of a
 * sequence is held back. The upstream request ends at a match, so its usage is usually unknown.
 *
 * Only response text is searched, each block separately. Relayed frames pass unchanged: their upstream
 * received the sequences and reports the match.
 */
export function withStopSequences(generate: Generate): Generate {
  return (job) => {
    const { stopSequences } = job.request.sampling
    if (stopSequences.length === 0) return generate(job)
    return endEarly(generate(job), () => createScan(stopSequences))
  }
}

/** Scans one generation. */
function createScan(sequences: readonly string[]): (batch: EventBatch) => ScanResult {
  const automaton = buildAutomaton(sequences)
  /** The open text block, if it is response text. */
  let block: number | null = null
  let state = start
  /** The end of the text, which may be the start of a sequence. */
  let held = ''

  /** Emits held text except its last characters. */
  const emit = (out: GenerationEvent[], charsToHold: number) => {
    const cut = held.length - charsToHold
    if (cut === 0 || block === null) return
    out.push({ type: 'text-delta', block, text: held.slice(0, cut) })
    held = held.slice(cut)
  }
  /** Scans a text delta; returns the sequence that it completes. */
  const scanDelta = (event: TextDelta, out: GenerationEvent[]): string | null => {
    const { text } = event
    for (let at = 0; at < text.length; at++) {
      state = automaton.step(state, text.charCodeAt(at))
      const matchedChars = automaton.matchedChars(state)
      if (matchedChars === 0) continue
      held += text.slice(0, at + 1)
      emit(out, matchedChars)
      return held
    }
    const depth = automaton.depth(state)
    if (depth === 0 && held === '') out.push(event)
    else {
      held += text
      emit(out, depth)
    }
    return null
  }
  return (batch) => {
    if (batch.relay !== undefined) return { events: batch, isEnd: false }
    const out: GenerationEvent[] = []
    for (const event of batch) {
      if (event.type === 'text-delta' && event.block === block) {
        const stopSequence = scanDelta(event, out)
        if (stopSequence === null) continue
        out.push({ type: 'text-end', block, complete: true })
        out.push(finishEarly(batch, 'stop-sequence', stopSequence))
        return { events: out, isEnd: true }
      }
      if (event.type === 'text-start') block = event.form === 'answer' ? event.block : null
      if (event.type === 'text-end') {
        emit(out, 0)
        block = null
        state = start
      }
      out.push(event)
    }
    return { events: out, isEnd: false }
  }
}

type TextDelta = Extract<GenerationEvent, { type: 'text-delta' }>

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
