import { expect, test } from 'bun:test'
import { encodeFrames } from '../../bench/support/speech-encoding.ts'
import { framesOf, makeSpeech, wordsPerUtterance } from '../../bench/support/speech-plan.ts'
import { sampleRateHz, ToneRecogniser } from '../../bench/support/spoken-tones.ts'
import { toolOutput } from '../support/speech-material.ts'

/** The words that the speech benchmarks count: none is lost to an encoding, and each loss shows. */

const speech = makeSpeech(20)
const words = Array.from({ length: speech.utterances * wordsPerUtterance }, (_, word) => word)

test('each word is heard once, at its time', () => {
  const heard = new ToneRecogniser().process(speech.samples)
  expect(heard.map(({ word }) => word)).toEqual(words)
  expect(heard.map(({ startMs }) => startMs).slice(13, 17)).toEqual([1_800, 1_900, 2_500, 2_600])
})

test('a word that lost 20 ms of its sound is not heard', () => {
  const samples = [...speech.samples]
  samples.splice((520 * sampleRateHz) / 1_000, (20 * sampleRateHz) / 1_000)
  const heard = new ToneRecogniser().process(Int16Array.from(samples))
  expect(heard.map(({ word }) => word)).toEqual(words.slice(1))
})

for (const encoding of ['opus', 'mp3'] as const) {
  const isMissing = Bun.which('ffmpeg') === null
  test.skipIf(isMissing)(`each word survives ${encoding} (needs ffmpeg)`, async () => {
    const frames = speech.utterances * 100
    const partAt = await encodeFrames(framesOf(speech, 0), frames, encoding)
    const parts = Array.from({ length: frames }, (_, frame) => partAt(frame))
    const encoded = await new Blob(parts.map((part) => part.slice())).bytes()
    const decode = '-v error -y -i IN -ac 1 -ar 16000 -f s16le OUT'
    const pcm = toolOutput(['ffmpeg', ...decode.split(' ')], encoded)
    const heard = new ToneRecogniser().process(new Int16Array(pcm.slice().buffer))
    expect(heard.map(({ word }) => word)).toEqual(words)
  })
}
