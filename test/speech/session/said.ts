import { expect } from 'bun:test'
import { eventually } from '#test/support/eventually.ts'
import { pcmBytes, type SpeechClient } from '#test/support/speech-client.ts'
import type { SpeechServer } from '#test/support/speech-server.ts'
import { speak } from '#test/support/spoken-numbers.ts'

const speech = speak([{ silenceMs: 200, words: 6 }])
export const bytes = pcmBytes(speech.samples)
export const wordsSaid = speech.words.map(({ word }) => word).join(' ')

/** Sends everything and waits until it has arrived. */
export async function say(client: SpeechClient): Promise<void> {
  client.sendAudio(bytes)
  const received = () => client.of('audio_ack').at(-1)?.received_bytes
  await eventually('the audio has arrived', () => received() === bytes.length)
}

export async function nothingIsLeft(server: SpeechServer): Promise<void> {
  const metrics = () => server.sessions.metrics()
  await eventually('everything is released', () => metrics().connections + metrics().sessions === 0)
  expect(metrics()).toMatchObject({ queuedBytes: 0, unreadBytes: 0 })
  expect(server.openSockets()).toBe(0)
}
