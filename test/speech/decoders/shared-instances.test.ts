import { expect, spyOn, test } from 'bun:test'
import { openAudioDecoder } from '#speech/decoders/open-decoder.ts'
import { type Sentence, speechFile, speechToolsExist } from '#test/support/speech-material.ts'

const pieceBytes = 700
const engineRateHz = 16_000

type Form = 'ogg' | 'mp3'

function open(form: Form) {
  const encoding = form === 'ogg' ? 'opus' : 'mp3'
  const format = { encoding, container: 'auto', sampleRateHz: null, channels: 1 } as const
  return openAudioDecoder(format, engineRateHz)
}

/** Decodes several files at once, a piece of each in turn. */
async function decodeInTurn(form: Form, sentences: readonly Sentence[]): Promise<number[][]> {
  const streams = await Promise.all(
    sentences.map(async (sentence) => ({
      bytes: speechFile(sentence, form),
      decoder: await open(form),
      samples: [] as number[],
    })),
  )
  const longest = Math.max(...streams.map(({ bytes }) => bytes.length))
  for (let at = 0; at < longest; at += pieceBytes) {
    const pieces = streams.map(({ decoder, bytes }) =>
      decoder.decode(bytes.subarray(at, at + pieceBytes))[Symbol.iterator](),
    )
    // One piece of samples of each stream in turn, too.
    for (let isDone = false; !isDone; ) {
      isDone = true
      for (const [index, stream] of streams.entries()) {
        const { done, value } = pieces[index]?.next() ?? { done: true }
        if (done) continue
        isDone = false
        stream.samples.push(...value)
      }
    }
  }
  for (const { decoder, samples } of streams) {
    for (const piece of decoder.end()) samples.push(...piece)
    decoder.close()
  }
  return streams.map(({ samples }) => samples)
}

for (const form of ['ogg', 'mp3'] as const) {
  test.skipIf(!speechToolsExist)(`streams of ${form} on one instance do not mix`, async () => {
    const [fox] = await decodeInTurn(form, ['fox'])
    const [door] = await decodeInTurn(form, ['door'])
    const together = await decodeInTurn(form, ['fox', 'door', 'fox'])
    expect(together).toEqual([fox ?? [], door ?? [], fox ?? []])
    expect(fox).not.toEqual(door)
  })

  test(`many streams of ${form} open few instances`, async () => {
    const instantiate = spyOn(WebAssembly, 'instantiate')
    try {
      const decoders = await Promise.all(Array.from({ length: 40 }, () => open(form)))
      for (const decoder of decoders) decoder.close()
      // One of them inflates the module on first use.
      expect(instantiate.mock.calls.length).toBeLessThanOrEqual(5)
    } finally {
      instantiate.mockRestore()
    }
  })
}
