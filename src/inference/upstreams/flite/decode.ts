import type { SpeakerProcess } from './speaker-process.ts'
import type { OutputFormat, Voice } from './wire.ts'

/** Sentence by sentence: the next is spoken when it is asked for. */
export async function* speakParts(
  speaker: SpeakerProcess,
  given: {
    readonly sentences: readonly string[]
    readonly voice: Voice
    readonly format: OutputFormat
    readonly speed: number
  },
): AsyncGenerator<Uint8Array, undefined> {
  const { sentences, ...begin } = given
  await speaker.loaded
  const head = await speaker.send({ type: 'begin', ...begin })
  if (head.length > 0) yield head
  for (const text of sentences) {
    const audio = await speaker.send({ type: 'say', text })
    if (audio.length > 0) yield audio
  }
  const rest = await speaker.send({ type: 'finish' })
  if (rest.length > 0) yield rest
}
