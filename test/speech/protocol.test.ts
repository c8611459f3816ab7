import { afterAll, beforeAll, expect, test } from 'bun:test'
import { isRecord } from '#lib/json.ts'
import { builtInEngine } from '#speech/engines/demo.ts'
import { createEngine } from '#speech/engines/registry.ts'
import { serverFrame } from '#speech/session/server-frames.ts'
import { engineDeps, silence, tone } from '#test/support/engine-session.ts'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { openSpeech, pcmBytes } from '#test/support/speech-client.ts'
import { type SpeechServer, startSpeechServer } from '#test/support/speech-server.ts'

/** PROTOCOL.md describes what the server does. */

const rate = 16_000
let gateway: Gateway
let server: SpeechServer
let document: string

beforeAll(async () => {
  gateway = await startGateway()
  server = startSpeechServer(gateway, { engines: [createEngine(builtInEngine, engineDeps())] })
  document = await Bun.file(new URL('../../src/speech/PROTOCOL.md', import.meta.url)).text()
})
afterAll(async () => {
  await server.stop()
  await gateway.stop()
})

/** Values that differ from session to session. */
const variable = new Set([
  ...['seq', 'session_id', 'resume_token', 'wall_ms', 'max_lag_ms', 'max_queued_ms', 'paused_ms'],
  ...['first_partial', 'final_p50', 'final_p95', 'partials_sent', 'pauses'],
])
const variableInAcks = ['received_bytes', 'credit_bytes', 'received_ms', 'processed_ms', 'final_ms']
const variableInPartials = ['text', 'end', 'rev', 'stable_text']

function withoutVariables(value: unknown, names: ReadonlySet<string>): unknown {
  if (Array.isArray(value)) return value.map((item) => withoutVariables(item, names))
  if (!isRecord(value)) return value
  const entries = Object.entries(value).map(([name, inner]) => [
    name,
    names.has(name) ? typeof inner : withoutVariables(inner, names),
  ])
  return Object.fromEntries(entries)
}

function comparable(frame: Record<string, unknown>): unknown {
  const names = new Set(variable)
  if (frame['type'] === 'audio_ack') for (const name of variableInAcks) names.add(name)
  if (frame['is_final'] === false) for (const name of variableInPartials) names.add(name)
  return withoutVariables(frame, names)
}

/** The audio of a line such as "32000 bytes of a tone". */
function audioOf(line: string): Uint8Array | null {
  const [, bytes, kind] = /^(\d+) bytes of (silence|a tone)$/.exec(line) ?? []
  if (bytes === undefined) return null
  const ms = (Number(bytes) * 1000) / (rate * 2)
  return pcmBytes(kind === 'silence' ? silence(ms, rate) : tone(ms, rate))
}

test('the example dialogue is what a client experiences', async () => {
  const lines = /## Example[\s\S]*?```text\n([\s\S]*?)```/.exec(document)?.[1]?.trim().split('\n')
  const client = await openSpeech(server.port, { token: await gateway.token() })
  let read = 0
  const kindOf = ({ type, is_final }: Record<string, unknown>) => `${type} ${is_final ?? ''}`
  for (const line of lines ?? []) {
    const content = line.slice(2)
    const audio = audioOf(content)
    if (audio !== null) client.sendAudio(audio)
    else if (line.startsWith('→')) client.sendFrame(1, content)
    else if (content.startsWith('close')) {
      await eventually('it is closed', () => client.closeCode() !== null)
      expect(content).toBe(`close ${client.closeCode()} client_end`)
    } else {
      const documented = JSON.parse(content)
      const find = () =>
        client.frames().findIndex((frame, at) => at >= read && kindOf(frame) === kindOf(documented))
      await eventually(`${content} comes`, () => find() >= 0)
      read = find() + 1
      expect(comparable({ ...client.frames()[read - 1] })).toEqual(comparable(documented))
    }
  }
  expect(lines?.length).toBeGreaterThan(10)
  expect(read).toBe(client.frames().length)
})

test('every field of every server frame is described', () => {
  const names = new Set<string>()
  const collect = (schema: unknown): void => {
    if (Array.isArray(schema)) for (const variant of schema) collect(variant)
    if (!isRecord(schema)) return
    for (const [name, inner] of Object.entries(schema['properties'] ?? {})) {
      names.add(name)
      collect(inner)
    }
    collect(schema['anyOf'])
    collect(schema['items'])
  }
  collect(serverFrame)
  expect(names.size).toBeGreaterThan(60)
  const described = document.slice(0, document.indexOf('## Example'))
  const isDescribed = (name: string) => new RegExp(`[\`.]${name}\``).test(described)
  expect([...names].filter((name) => !isDescribed(name))).toEqual([])
})
