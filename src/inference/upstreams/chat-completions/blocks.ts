import type { GenerationEvent, TokenLogprob } from '#inference/events.ts'
import type { Citations } from './citations.ts'

type BlockKind = 'answer' | 'refusal' | 'reasoning'

/** Numbers the blocks of a generation and keeps at most one of them open. */
export type Blocks = {
  isOpen(kind: BlockKind): boolean
  /** Opens a block and closes the one before. */
  begin(kind: BlockKind, out: GenerationEvent[]): void
  /** Adds to the open block; `logprobs` only to an answer. */
  append(text: string, out: GenerationEvent[], logprobs?: readonly TokenLogprob[]): void
  close(out: GenerationEvent[], complete: boolean): void
  /** Closes the open block and gives the number of one that is opened elsewhere. */
  claim(out: GenerationEvent[]): number
}

export function createBlocks(citations: Citations): Blocks {
  let open: BlockKind | null = null
  let block = -1
  let textChars = 0
  let keptText: string | null = null

  const close = (out: GenerationEvent[], complete: boolean) => {
    if (open === 'reasoning') out.push({ type: 'reasoning-end', block, complete })
    else if (open !== null) {
      if (open === 'answer') {
        for (const citation of citations.take(keptText, textChars)) {
          out.push({ type: 'citation', block, citation })
        }
      }
      out.push({ type: 'text-end', block, complete })
    }
    open = null
  }

  const claim = (out: GenerationEvent[]) => {
    close(out, true)
    return ++block
  }

  return {
    isOpen: (kind) => open === kind,
    begin(kind, out) {
      claim(out)
      open = kind
      textChars = 0
      keptText = citations.wantsText() ? '' : null
      if (kind === 'reasoning') out.push({ type: 'reasoning-start', block })
      else out.push({ type: 'text-start', block, form: kind })
    },
    append(text, out, logprobs) {
      if (open === 'reasoning') {
        out.push({ type: 'reasoning-delta', block, part: 0, text })
        return
      }
      textChars += text.length
      if (keptText !== null) keptText += text
      if (logprobs === undefined) out.push({ type: 'text-delta', block, text })
      else out.push({ type: 'text-delta', block, text, logprobs })
    },
    close,
    claim,
  }
}
