import { afterAll, beforeAll, expect, test } from 'bun:test'
import { DeepgramClient } from '@deepgram/sdk'
import OpenAI from 'openai'
import { OpenAIRealtimeWS } from 'openai/realtime/ws'
import type { RealtimeServerEvent } from 'openai/resources/realtime/realtime'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { pocketsphinxCommand, pocketsphinxExists } from '#test/support/pocketsphinx/engine.ts'
import {
  sentences,
  speechFile,
  speechToolsExist,
  toolOutput,
} from '#test/support/speech-material.ts'
import { startTlsFront } from '#test/support/tls-front.ts'

/** Spoken sentences through the client packages of other services, word for word. */

const isMissing = !(pocketsphinxExists && speechToolsExist)
const rawOf = (rate: number) => ['-t', 'raw', '-r', String(rate), '-c', '1']
const pcm16k = [...rawOf(16_000), '-b', '16', '-e', 'signed']

let gateway: Gateway
let front: Awaited<ReturnType<typeof startTlsFront>>

beforeAll(async () => {
  const command = pocketsphinxCommand({ framed: true })
  gateway = await startGateway({
    engine: isMissing
      ? []
      : [{ name: 'sphinx', kind: 'exec', framed: true, command, openMs: 30_000 }],
  })
  front = await startTlsFront(gateway.port)
})
afterAll(async () => {
  front.stop()
  await gateway.stop()
})

function convert(pcm: Uint8Array, rate: number, form: readonly string[]): Uint8Array {
  return toolOutput(['sox', '-R', ...pcm16k, 'IN', ...rawOf(rate), ...form, 'OUT'], pcm)
}

const both = () => Buffer.concat([speechFile('fox', 'pcm_int16'), speechFile('door', 'pcm_int16')])
const pcm24k = () => convert(both(), 24_000, ['-b', '16', '-e', 'signed'])
const g711 = (law: 'mu-law' | 'a-law') => convert(both(), 8_000, ['-e', law, '-b', '8'])

async function openRealtime() {
  const client = new OpenAI({ baseURL: `${front.url}/v1`, apiKey: await gateway.token() })
  const realtime = new OpenAIRealtimeWS(
    { intent: 'transcription', options: { rejectUnauthorized: false } },
    client,
  )
  const events: RealtimeServerEvent[] = []
  realtime.on('event', (event) => events.push(event))
  realtime.on('error', () => {})
  const of = <T extends RealtimeServerEvent['type']>(type: T) =>
    events.filter(
      (event): event is Extract<RealtimeServerEvent, { type: T }> => event.type === type,
    )
  const waitFor = async <T extends RealtimeServerEvent['type']>(type: T, count = 1) => {
    await eventually(`${count} ${type} come`, () => of(type).length >= count)
    return of(type)
  }
  const append = (audio: Uint8Array, pieceBytes: number) => {
    for (let at = 0; at < audio.length; at += pieceBytes) {
      const piece = Buffer.from(audio.subarray(at, at + pieceBytes)).toString('base64')
      realtime.send({ type: 'input_audio_buffer.append', audio: piece })
    }
  }
  await waitFor('session.created')
  return { realtime, events, of, waitFor, append }
}

const completed = 'conversation.item.input_audio_transcription.completed' as const
const delta = 'conversation.item.input_audio_transcription.delta' as const

/** A strict reading of one connection: ids before use, deltas of one item join to its transcript. */
function checkEvents(events: readonly RealtimeServerEvent[]): void {
  const known = new Set<string>()
  const texts = new Map<string, string>()
  let last: string | null = null
  for (const event of events) {
    if (event.type === 'conversation.item.added' || event.type === 'conversation.item.created') {
      expect(event.previous_item_id ?? null).toBe(last)
      last = event.item.id ?? null
      known.add(last ?? '')
    }
    if (event.type === delta) {
      expect(known).toContain(event.item_id)
      texts.set(event.item_id, (texts.get(event.item_id) ?? '') + event.delta)
    }
    if (event.type === completed) {
      expect(texts.get(event.item_id) ?? '').toBe(event.transcript)
    }
  }
  expect(new Set(events.map((event) => Object(event)['event_id'])).size).toBe(events.length)
}

test.skipIf(isMissing)('OpenAIRealtimeWS: pauses end turns', async () => {
  const { realtime, events, of, waitFor, append } = await openRealtime()
  realtime.send({
    type: 'session.update',
    session: {
      type: 'transcription',
      audio: { input: { transcription: { model: 'gpt-4o-transcribe', language: 'en' } } },
      include: ['item.input_audio_transcription.logprobs'],
    },
  })
  await waitFor('session.updated')
  append(pcm24k(), 4_801)
  const turns = await waitFor(completed, 2)
  expect(turns.map(({ transcript }) => transcript)).toEqual([sentences.fox, sentences.door])
  expect(turns[0]?.logprobs?.map(({ token }) => token).join(' ')).toBe(sentences.fox)
  const [started] = of('input_audio_buffer.speech_started')
  expect(started?.audio_start_ms).toBeWithin(400, 1_000)
  expect(of('input_audio_buffer.speech_stopped')).toHaveLength(2)
  checkEvents(events)
  realtime.close()
})

test.skipIf(isMissing)('the older form, G.711 and turns that the client commits', async () => {
  const { realtime, events, of, waitFor, append } = await openRealtime()
  // The package has the types of this form, but no longer sends it.
  const session = {
    input_audio_format: 'g711_ulaw',
    input_audio_transcription: { model: 'sphinx', language: 'en' },
    turn_detection: null,
  }
  realtime.socket.send(JSON.stringify({ type: 'transcription_session.update', session }))
  await eventually('it is updated', () =>
    events.some(({ type }) => String(type) === 'transcription_session.updated'),
  )
  append(g711('mu-law'), 8_000)
  realtime.send({ type: 'input_audio_buffer.commit' })
  const [turn] = await waitFor(completed)
  // The recogniser needs a sentence to get used to a telephone line.
  expect(turn?.transcript).toEndWith(sentences.door)
  expect(turn?.usage).toMatchObject({ type: 'duration', seconds: g711('mu-law').length / 8_000 })
  expect(of('conversation.item.created')).toHaveLength(1)
  expect(of('input_audio_buffer.speech_started')).toHaveLength(0)
  checkEvents(events)
  realtime.close()
})

type Message = { readonly type: string; readonly [field: string]: unknown }

async function deepgram() {
  const apiKey = Object(await (await gateway.post('/v1/api-keys', { name: 'dg' })).json())['key']
  const environment = {
    base: gateway.url,
    production: gateway.url.replace('http', 'ws'),
    agent: gateway.url,
    agentRest: gateway.url,
  }
  return new DeepgramClient({ apiKey, environment })
}

async function listen(options: Record<string, string | number | boolean>) {
  const connection = await (await deepgram()).listen.v1.connect({
    model: 'nova-3',
    Authorization: '',
    reconnectAttempts: 0,
    ...options,
  })
  const messages: Message[] = []
  connection.on('message', (message) => messages.push({ ...message }))
  let closeCode: number | null = null
  connection.on('close', ({ code }) => {
    closeCode = code
  })
  connection.connect()
  await connection.waitForOpen()
  const finals = () =>
    messages.filter(({ type, is_final }) => type === 'Results' && is_final === true)
  const textOf = (message: Message) => Object(message)['channel'].alternatives[0].transcript
  return {
    connection,
    messages,
    of: (type: string) => messages.filter((message) => message.type === type),
    text: () =>
      finals()
        .map(textOf)
        .filter((text) => text !== '')
        .join(' '),
    closeCode: () => closeCode,
    async send(audio: Uint8Array, pieceBytes: number) {
      for (let at = 0; at < audio.length; at += pieceBytes) {
        connection.sendMedia(audio.slice(at, at + pieceBytes))
      }
    },
  }
}

const forms = [
  ['linear16', { sample_rate: 24_000 }, pcm24k, 48_000, `${sentences.fox} ${sentences.door}`],
  ['mulaw', {}, () => g711('mu-law'), 8_000, sentences.door],
] as const

test.skipIf(isMissing).each(forms)(
  'Deepgram: %s, word for word',
  async (encoding, format, audio, byteRate, said) => {
    const seconds = audio().length / byteRate
    const live = await listen({
      encoding,
      ...format,
      interim_results: 'true',
      vad_events: 'true',
      utterance_end_ms: '1000',
      endpointing: 300,
    })
    await live.send(audio(), 5_000)
    live.connection.sendCloseStream({ type: 'CloseStream' })
    await eventually('it is closed', () => live.closeCode() !== null)
    expect(live.closeCode()).toBe(1000)
    expect(live.text()).toEndWith(said)
    expect(live.messages.at(-1)).toMatchObject({
      type: 'Metadata',
      duration: expect.closeTo(seconds, 1),
    })
    expect(live.of('SpeechStarted').length).toBeGreaterThan(0)
    expect(live.of('UtteranceEnd')).toHaveLength(2)
    expect(live.of('Results').some(({ is_final }) => is_final === false)).toBe(true)
  },
)

test.skipIf(isMissing)('Deepgram: a container is detected, and Finalize is answered', async () => {
  const live = await listen({})
  await live.send(speechFile('fox', 'ogg'), 700)
  live.connection.sendFinalize({ type: 'Finalize' })
  await eventually('it is final', () =>
    live.messages.some((each) => each['from_finalize'] === true),
  )
  expect(live.text()).toBe(sentences.fox)
  live.connection.sendCloseStream({ type: 'CloseStream' })
  await eventually('it is closed', () => live.closeCode() !== null)
})

test.skipIf(isMissing)('Deepgram: a file', async () => {
  const response = await (await deepgram()).listen.v1.media.transcribeFile(
    new Blob([speechFile('fox', 'wav').slice()]),
    { model: 'nova-3', smart_format: true, utterances: true },
  )
  if (!('results' in response)) throw new Error('no results')
  expect(response.results.channels[0]?.alternatives?.[0]?.transcript).toBe(sentences.fox)
  expect(response.results.utterances).toHaveLength(1)
  expect(response.metadata.duration).toBeGreaterThan(4)
})
