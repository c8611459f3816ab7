import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TSchema } from '@sinclair/typebox'
import { isObjectSchema } from '#config/keys.ts'
import { ConfigError, loadConfig } from '#config/load.ts'
import { configSchema } from '#config/schema.ts'
import { createSealerOf } from '#sealing/sealer.ts'
import { temporaryFolder } from '#test/support/process.ts'

/** An empty secret switches a feature off, or is refused. It never becomes the key of a signature. */

type Secret = { readonly path: readonly string[]; readonly env: string | undefined }

/** Secrets outside of lists. */
function secretsIn(schema: TSchema, path: readonly string[] = []): Secret[] {
  if (schema['secret'] === true) return [{ path, env: schema['env'] }]
  if (!isObjectSchema(schema)) return []
  return Object.entries(schema.properties).flatMap(([key, inner]) =>
    secretsIn(inner, [...path, key]),
  )
}

const secrets = secretsIn(configSchema)

function fileOf(text: string): string {
  const path = join(temporaryFolder(), 'sluice.toml')
  writeFileSync(path, text)
  return path
}

const toSnake = (key: string) => key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

test('the configuration has secrets', () => {
  expect(secrets.map(({ env }) => env)).toEqual(
    expect.arrayContaining(['JWT_SECRET', 'SLUICE_KEY_PEPPER', 'SLUICE_METRICS_TOKEN']),
  )
})

test.each(secrets.map((secret) => [secret.path.join('.'), secret] as const))(
  '%s is not set by an empty variable, and must not be empty in the file',
  (_, { path, env }) => {
    const valueIn = (config: object) =>
      path.reduce<unknown>((value, key) => Object(value)[key], config)
    if (env !== undefined) expect(valueIn(loadConfig({ [env]: '' }))).toBeUndefined()
    const [key = '', ...sections] = path.map(toSnake).toReversed()
    const section = sections.length === 0 ? '' : `[${sections.toReversed().join('.')}]\n`
    const load = () => loadConfig({ SLUICE_CONFIG: fileOf(`${section}${key} = ""\n`) })
    expect(load).toThrow(ConfigError)
    expect(load).toThrow(path.map(toSnake).join('.'))
  },
)

test('an upstream with an empty key is refused', () => {
  const file = '[[upstream]]\nname = "one"\nurl = "http://127.0.0.1:1/v1"\nkey = ""\n'
  expect(() => loadConfig({ SLUICE_CONFIG: fileOf(file) })).toThrow(ConfigError)
})

test('nothing is sealed or signed without a key', () => {
  expect(() => createSealerOf([])).toThrow('no encryption key')
})
