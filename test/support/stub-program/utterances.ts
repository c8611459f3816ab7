/** Silence that ends an utterance. */
const pauseMs = 400
const partialEveryMs = 200

/**
 * Utterances of non-zero samples: "utterance 1", "utterance 2" ..., each with one word, partials while
 * it lasts and a final at its end.
 */
export function createUtterances(sampleRateHz: number, say: (message: object) => void) {
  let samplesSeen = 0
  let count = 0
  let open: { start: number; end: number; reported: number } | null = null
  const seconds = (samples: number) => samples / sampleRateHz

  function close() {
    if (open === null) return
    count += 1
    const times = { start: seconds(open.start), end: seconds(open.end) }
    const word = { word: `utterance-${count}`, ...times, confidence: 0.5 }
    const text = `utterance ${count}`
    say({ type: 'final', text, words: [word], audio_s: seconds(samplesSeen) })
    open = null
  }

  function takeLoud(at: number) {
    open ??= { start: at, end: at, reported: at }
    open.end = at + 1
  }

  return {
    close,
    take(samples: Int16Array) {
      for (const [index, sample] of samples.entries()) {
        if (sample !== 0) takeLoud(samplesSeen + index)
      }
      samplesSeen += samples.length
      if (open === null) return
      if (seconds(samplesSeen - open.end) * 1000 >= pauseMs) close()
      else if (seconds(samplesSeen - open.reported) * 1000 >= partialEveryMs) {
        open.reported = samplesSeen
        say({ type: 'partial', text: `utterance ${count + 1}`, audio_s: seconds(samplesSeen) })
      }
    },
  }
}
