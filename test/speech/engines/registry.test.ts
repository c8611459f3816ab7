import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { EngineConfig } from '#config/schema.ts'
import { engineFaults, engineKinds } from '#speech/engines/registry.ts'
import { engineConfig } from '#test/support/engine-session.ts'

const url = 'ws://127.0.0.1:2700'

function faultsOf(config: Partial<EngineConfig> & Pick<EngineConfig, 'kind'>): string[] {
  return [...engineFaults({ engine: [engineConfig(config)] })]
}

test('an unknown engine kind is refused with the known ones', () => {
  expect(faultsOf({ kind: 'whisper', url })).toEqual([
    'engine.0.kind (SLUICE_STT_ENGINE): expected one of exec, vosk, openai-realtime, openai-transcriptions, deepgram, local, demo.',
  ])
})

test('an unknown dialect is refused for a kind with dialects', () => {
  expect(faultsOf({ kind: 'openai-realtime', url, dialect: 'nemo' })).toEqual([])
  expect(faultsOf({ kind: 'openai-realtime', url, dialect: 'alpha' })).toEqual([
    'engine.0.dialect: expected one of ga, beta, vllm, nemo.',
  ])
})

test('a server requires a URL, a program a command, and the demo neither', () => {
  for (const kind of ['vosk', 'openai-realtime', 'deepgram']) {
    expect(faultsOf({ kind, url })).toEqual([])
    for (const invalid of [undefined, '127.0.0.1:2700', 'ftp://host/', 'ws://user:pass@host/']) {
      const location = invalid === undefined ? {} : { url: invalid }
      expect(faultsOf({ kind, ...location })).toEqual([
        'engine.0.url (SLUICE_STT_URL): a ws, wss, http or https URL is needed.',
      ])
    }
  }
  expect(faultsOf({ kind: 'exec', command: ['recogniser'] })).toEqual([])
  expect(faultsOf({ kind: 'exec' })).toEqual(['engine.0.command: a program is needed.'])
  expect(faultsOf({ kind: 'demo' })).toEqual([])
})

test('programs and plain transcription servers declare features', () => {
  expect(faultsOf({ kind: 'exec', command: ['recogniser'], features: ['words'] })).toEqual([])
  expect(faultsOf({ kind: 'vosk', url, features: ['words'] })).toEqual([
    'engine.0.features: only programs and plain transcription servers declare them; those of kind = "vosk" are known.',
  ])
})

test('docs/speech.md lists every engine kind with its dialects', () => {
  const guide = readFileSync(join(import.meta.dir, '../../../docs/speech.md'), 'utf8')
  const rows = new Map(
    [...guide.matchAll(/^\| `([a-z-]+)` \| (.+) \|$/gm)].map(([, kind = '', text = '']) => [
      kind,
      text,
    ]),
  )
  // The header of the table.
  rows.delete('kind')
  expect([...rows.keys()].toSorted()).toEqual(Object.keys(engineKinds).toSorted())
  for (const [kind, { dialects = [] }] of Object.entries(engineKinds)) {
    for (const dialect of dialects) expect(rows.get(kind)).toContain(`\`${dialect}\``)
  }
})
