import { expect, test } from 'bun:test'
import { readSettings, withSettings } from '../../bench/support/options.ts'

/** `--set` on a configuration file. */

const file = `
[speech]
sessions_per_user_max = 3

[[engine]]
name = "stub"
url = "ws://127.0.0.1:1"
`

test('a setting is added to an existing or a new section', () => {
  const toml = withSettings(file, ['speech.resume_chars_max=1024', 'limits.body_bytes_max=9'])
  expect(Bun.TOML.parse(toml)).toMatchObject({
    speech: { sessions_per_user_max: 3, resume_chars_max: 1024 },
    limits: { body_bytes_max: 9 },
  })
})

test('a setting overrides the file, also in list entries', () => {
  const toml = withSettings(file, ['speech.sessions_per_user_max=5', 'engine.0.name=other'])
  expect(Bun.TOML.parse(toml)).toMatchObject({
    speech: { sessions_per_user_max: 5 },
    engine: [{ name: 'other', url: 'ws://127.0.0.1:1' }],
  })
})

test('a value is a number, boolean or list if it parses as one, otherwise a string', () => {
  const toml = withSettings('', ['a.n=1', 'a.b=true', 'a.l=["x"]', 'a.t=info', 'a.e=x=y "z"'])
  expect(Bun.TOML.parse(toml)).toEqual({
    a: { n: 1, b: true, l: ['x'], t: 'info', e: 'x=y "z"' },
  })
})

test('an argument that is not key=value is a usage error', () => {
  expect(() => readSettings(['speech'])).toThrow('--set is a key of the configuration')
})
