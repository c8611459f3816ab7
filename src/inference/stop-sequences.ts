import { AppError } from '#lib/errors.ts'
import type { EventBatch, GenerationEvent } from './events.ts'
import type { Generate, GenerationJob } from './inference.ts'

/** All stop sequences of one request together, in characters; each costs memory of its own. */
const sequenceCharsMax = 16_384

/**
 * Generations that end before the first of their stop sequences, whatever the upstream makes of
 * them. The sequence that is complete first counts, and the longest of those that are complete at
 * once. Text that may be the beginning of one is held back, and nothing else; the upstream is ended
 * at once, so its usage is mostly not known.
 *
 * Only the text of an answer is looked at, each block on its own. Frames that an upstream of the
 * caller's protocol wrote pass as they are: it was given the sequences, and tells the match itself.
 */
export function withStopSequences(generate: Generate): Generate {
  return (job) =>
    job.request.sampling.stopSequences.length === 0 ? generate(job) : generateUntil(generate, job)
}

async function* generateUntil(
  generate: Generate,
  job: GenerationJob,
): AsyncGenerator<EventBatch, void, void> {
  const scan = createScan(buildAutomaton(job.request.sampling.stopSequences))
  let ending: EventBatch | null = null
  for await (const batch of generate(job)) {
    if (batch.relay !== undefined) {
      yield batch
      continue
    }
    const { events, isOver } = scan(batch)
    if (isOver) {
      ending = events
      break
    }
    if (events.length > 0) yield events
  }
  // By now the upstream was told to end, before anybody may take their time with this.
  if (ending !== null) yield ending
}

type Scanned = { events: GenerationEvent[]; isOver: boolean }

/** Reads one generation. */
function createScan(automaton: Automaton): (batch: EventBatch) => Scanned {
  /** The open text, if it is one of the answer. */
  let block: number | null = null
  let state = start
  const held = createHeldText()

  const give = (out: GenerationEvent[], text: string) => {
    if (text !== '' && block !== null) out.push({ type: 'text-delta', block, text })
  }
  /** Takes a piece of text; returns the sequence that it completes. */
  const take = (event: TextDelta, out: GenerationEvent[]): string | null => {
    const { text } = event
    for (let at = 0; at < text.length; at++) {
      state = automaton.step(state, text.charCodeAt(at))
      const matchedChars = automaton.matchedChars(state)
      if (matchedChars === 0) continue
      held.add(text.slice(0, at + 1))
      give(out, held.take(held.chars() - matchedChars))
      return held.take(matchedChars)
    }
    const depth = automaton.depth(state)
    if (depth === 0 && held.chars() === 0) {
      out.push(event)
      return null
    }
    held.add(text)
    give(out, held.take(held.chars() - depth))
    return null
  }
  const close = (out: GenerationEvent[]) => {
    give(out, held.take(held.chars()))
    block = null
    state = start
  }
  return (batch) => {
    const out: GenerationEvent[] = []
    for (const event of batch) {
      if (event.type === 'text-delta' && event.block === block) {
        const stopSequence = take(event, out)
        if (stopSequence === null) continue
        out.push({ type: 'text-end', block, complete: true })
        out.push(finishOf(batch, stopSequence))
        return { events: out, isOver: true }
      }
      if (event.type === 'text-start') block = event.form === 'answer' ? event.block : null
      if (event.type === 'text-end') close(out)
      out.push(event)
    }
    return { events: out, isOver: false }
  }
}

/** What the upstream used is known where it was done already. */
function finishOf(batch: EventBatch, stopSequence: string): GenerationEvent {
  const last = batch.at(-1)
  const usage = last?.type === 'finish' ? last.usage : null
  return { type: 'finish', reason: 'stop-sequence', rawReason: null, usage, stopSequence }
}

/** Text in the pieces in which it came, so that to hold much of it costs no more than little. */
function createHeldText() {
  const pieces: string[] = []
  let chars = 0
  return {
    chars: () => chars,
    add(text: string) {
      pieces.push(text)
      chars += text.length
    },
    /** The first so many characters. */
    take(count: number): string {
      let taken = ''
      while (taken.length < count) {
        const piece = pieces[0]
        if (piece === undefined) break
        const missing = count - taken.length
        taken += piece.slice(0, missing)
        if (piece.length <= missing) pieces.shift()
        else pieces[0] = piece.slice(missing)
      }
      chars -= taken.length
      return taken
    },
  }
}

type TextDelta = Extract<GenerationEvent, { type: 'text-delta' }>

/** Finds any of many sequences in one pass over a text, however it repeats itself. */
type Automaton = {
  /** The state after one more UTF-16 code unit. */
  step(state: number, code: number): number
  /** How many characters the text ends with that may become a sequence. */
  depth(state: number): number
  /** The length of the longest sequence that the text ends with; 0 where it ends with none. */
  matchedChars(state: number): number
}

const start = 0
const codesPerState = 0x1_0000

/**
 * A trie of the sequences in which every state knows where to go on when its own branch ends: the
 * longest beginning of a sequence that the text so far still ends with (Aho and Corasick).
 */
function buildAutomaton(sequences: readonly string[]): Automaton {
  const next = new Map<number, number>()
  const depths = [0]
  const matched = [0]
  const child = (state: number, code: number) => next.get(state * codesPerState + code)
  // Half a character is in no text, and to match it would cut a character in two.
  const searched = sequences.filter((text) => text !== '' && text.isWellFormed())
  refuseTooLong(searched)
  for (const sequence of searched) {
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

/** States are numbered so that a parent comes before its children, but not level by level. */
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
    `All stop sequences together are longer than ${sequenceCharsMax} characters.`,
    { param: 'stop_sequences' },
  )
}
