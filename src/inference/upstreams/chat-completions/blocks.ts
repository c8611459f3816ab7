import type { GenerationEvent, TokenLogprob } from '#inference/events.ts'
import type { Citations } from './citations.ts'

type BlockKind = 'answer' | 'refusal' | 'reasoning'

/** Numbers the blocks of a generation, of which at most one is open. */
export class Blocks {
  readonly #citations: Citations
  #open: BlockKind | null = null
  #block = -1
  #textChars = 0
  #citingText: string | null = null

  constructor(citations: Citations) {
    this.#citations = citations
  }

  isOpen(kind: BlockKind): boolean {
    return this.#open === kind
  }

  /** Opens a block and closes the previous one. */
  begin(kind: BlockKind, out: GenerationEvent[]) {
    const block = this.claim(out)
    this.#open = kind
    this.#textChars = 0
    this.#citingText = this.#citations.wantsText() ? '' : null
    if (kind === 'reasoning') out.push({ type: 'reasoning-start', block })
    else out.push({ type: 'text-start', block, form: kind })
  }

  /** Appends to the open block; `logprobs` only to an answer. */
  append(text: string, out: GenerationEvent[], logprobs?: readonly TokenLogprob[]) {
    const block = this.#block
    if (this.#open === 'reasoning') {
      out.push({ type: 'reasoning-delta', block, part: 0, text })
      return
    }
    this.#textChars += text.length
    if (this.#citingText !== null) this.#citingText += text
    if (logprobs === undefined) out.push({ type: 'text-delta', block, text })
    else out.push({ type: 'text-delta', block, text, logprobs })
  }

  close(out: GenerationEvent[], complete: boolean) {
    const block = this.#block
    if (this.#open === 'reasoning') out.push({ type: 'reasoning-end', block, complete })
    else if (this.#open !== null) {
      if (this.#open === 'answer') {
        for (const citation of this.#citations.take(this.#citingText, this.#textChars)) {
          out.push({ type: 'citation', block, citation })
        }
      }
      out.push({ type: 'text-end', block, complete })
    }
    this.#open = null
  }

  /** Closes the open block and returns the number of a block that the caller opens. */
  claim(out: GenerationEvent[]): number {
    this.close(out, true)
    this.#block += 1
    return this.#block
  }
}
