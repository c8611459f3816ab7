import { expect } from 'bun:test'
import type { Transcript } from '#speech/recognition/recognition.ts'

/** Checks the invariants of a session's transcripts, in order. */
export function checkTranscripts(transcripts: readonly Transcript[]): void {
  let open: Transcript | null = null
  let segment = 1
  let endMs = 0
  for (const transcript of transcripts) {
    expect(transcript.segment).toBe(segment)
    expect(transcript.rev).toBe((open?.rev ?? 0) + 1)
    expect(transcript.startMs).toBeGreaterThanOrEqual(endMs)
    expect(transcript.endMs).toBeGreaterThanOrEqual(transcript.startMs)
    if (transcript.isFinal) expect(transcript.stableText).toBe(transcript.text)
    else checkPartial(transcript, open)
    open = transcript.isFinal ? null : transcript
    if (!transcript.isFinal) continue
    checkWords(transcript)
    segment += 1
    endMs = transcript.endMs
  }
}

function checkPartial(partial: Transcript, before: Transcript | null): void {
  expect(partial.text).not.toBe(before?.text)
  expect(`${partial.text} `).toStartWith(partial.stableText === '' ? '' : `${partial.stableText} `)
  // An empty text withdraws the partial.
  if (partial.text !== '') expect(partial.stableText).toStartWith(before?.stableText ?? '')
}

function checkWords({ words, startMs, endMs }: Transcript): void {
  let at = startMs
  for (const word of words) {
    expect(word.startMs).toBeGreaterThanOrEqual(at)
    at = word.startMs
    expect(word.endMs).toBeLessThanOrEqual(endMs)
  }
}
