import type { SessionStats, UnsentFrame } from '#speech/session/server-frames.ts'

type Transcript = Extract<UnsentFrame, { type: 'transcript' }>
type Word = {
  readonly word: string
  readonly start: number
  readonly end: number
  readonly confidence: number | null
}

/** Results have one channel: two are mixed. */
export const channelIndex = [0, 1]

/** What an engine does not report counts as certain, as in transcriptions of files. */
const certain = 1

export type ModelInfo = { readonly name: string; readonly version: string; readonly arch: string }

/** An engine as these clients see a model: its id follows from its name. */
export function describeModel(engine: string): { readonly uuid: string; readonly info: ModelInfo } {
  const hash = new Bun.CryptoHasher('sha256').update(engine).digest('hex')
  const uuid = hash.slice(0, 32).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
  return { uuid, info: { name: engine, version: '1', arch: 'sluice' } }
}

function renderWords(words: readonly Word[]) {
  return words.map(({ word, start, end, confidence }) => ({
    word: word.toLowerCase().replace(/^[\p{P}]+|[\p{P}]+$/gu, ''),
    start,
    end,
    confidence: confidence ?? certain,
    punctuated_word: word,
  }))
}

export function renderAlternative(
  transcript: string,
  confidence: number | null,
  words: readonly Word[],
) {
  return { transcript, confidence: confidence ?? certain, words: renderWords(words) }
}

/** `Results` of a transcript. */
export function renderResults(
  frame: Transcript,
  given: { readonly requestId: string; readonly engine: string; readonly endsSpeech: boolean },
) {
  const { uuid, info } = describeModel(given.engine)
  const [confidence, words] = frame.is_final ? [frame.confidence, frame.words ?? []] : [null, []]
  return {
    type: 'Results',
    channel_index: channelIndex,
    duration: roundedS(frame.end - frame.start),
    start: frame.start,
    is_final: frame.is_final,
    speech_final: frame.is_final && given.endsSpeech && frame.speech_final,
    channel: { alternatives: [renderAlternative(frame.text, confidence, words)] },
    metadata: { request_id: given.requestId, model_info: info, model_uuid: uuid },
    from_finalize: frame.is_final && frame.from_finalize !== null,
  }
}

/** The end of a stream: what was received, and what was not transcribed of it. */
export function renderMetadata(given: {
  readonly requestId: string
  readonly engine: string
  readonly sha256: string
  readonly createdAt: string
  readonly channels: number
  readonly stats: SessionStats | null
}) {
  const { requestId, engine, sha256, createdAt, channels, stats } = given
  const { uuid, info } = describeModel(engine)
  return {
    type: 'Metadata',
    transaction_key: 'deprecated',
    request_id: requestId,
    sha256,
    created: createdAt,
    duration: (stats?.audio_ms ?? 0) / 1_000,
    channels,
    models: [uuid],
    model_info: { [uuid]: info },
    ...(stats !== null && stats.untranscribed_ms > 0
      ? { untranscribed_ms: stats.untranscribed_ms, gaps: stats.gaps }
      : {}),
  }
}

function roundedS(seconds: number): number {
  return Math.max(0, Math.round(seconds * 1_000)) / 1_000
}
