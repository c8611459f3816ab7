import { createPartialPacer } from './partial-pacer.ts'
import type { RecognitionEvent, RecognitionOptions, Transcript } from './recognition-events.ts'
import { createStablePrefix, wordsOf } from './stable-prefix.ts'

/**
 * Numbers segments and revisions, and lets partials through at the agreed pace. A segment is told
 * as begun (`speech-start`) once, before its first text.
 */
export type TranscriptWriter = {
  begin(atMs: number): void
  partial(partial: Said): void
  final(final: SaidFinally): void
  /** The partials of the open segment were a mistake. */
  withdraw(): void
  /** Whether a text of the open segment has come. */
  isOpen(): boolean
  counts(): { readonly finals: number; readonly words: number }
  stop(): void
}

type Said = { readonly text: string; readonly startMs: number; readonly endMs: number }
type SaidFinally = Said & Pick<Transcript, 'speechFinal' | 'confidence' | 'words' | 'fromFinalize'>

type WriterOptions = Pick<RecognitionOptions, 'partials' | 'words' | 'partialsPerSecondMax'>

export function createTranscriptWriter(
  options: WriterOptions,
  emit: (event: RecognitionEvent) => void,
): TranscriptWriter {
  const stable = createStablePrefix()
  const pacer = createPartialPacer<Said & { stableText: string }>(
    options.partialsPerSecondMax,
    showPartial,
  )
  const showsPartials = options.partials && options.partialsPerSecondMax > 0
  let finals = 0
  let words = 0
  let rev = 0
  let hasBegun = false
  let isOpen = false
  let shown: Said | null = null

  function begin(atMs: number) {
    if (hasBegun) return
    hasBegun = true
    emit({ type: 'speech-start', atMs })
  }
  function showPartial(partial: Said & { stableText: string }) {
    if (partial.text === (shown?.text ?? '')) return
    begin(partial.startMs)
    shown = partial
    rev += 1
    emit({
      type: 'transcript',
      segment: finals + 1,
      rev,
      isFinal: false,
      speechFinal: false,
      confidence: null,
      words: [],
      fromFinalize: null,
      ...partial,
    })
  }
  function clear() {
    pacer.clear()
    stable.reset()
    isOpen = false
    hasBegun = false
    shown = null
  }

  return {
    begin,
    partial(partial) {
      isOpen = true
      if (showsPartials) pacer.offer({ ...partial, ...stable.take(partial.text) })
    },
    final(final) {
      pacer.clear()
      begin(final.startMs)
      clear()
      const transcript = { segment: finals + 1, rev: rev + 1 }
      rev = 0
      finals += 1
      words += wordsOf(final.text).length
      emit({
        type: 'transcript',
        ...transcript,
        isFinal: true,
        stableText: final.text,
        ...final,
        words: options.words ? final.words : [],
      })
    },
    withdraw() {
      pacer.clear()
      if (shown !== null) showPartial({ ...shown, text: '', stableText: '' })
      clear()
    },
    isOpen: () => isOpen,
    counts: () => ({ finals, words }),
    stop: () => pacer.clear(),
  }
}
