import { expect, test } from 'bun:test'
import { readSettings, withSettings } from '../../bench/support/options.ts'

/** What `--set` makes of a configuration file. */

const file = `
[speech]
sessions_per_user_max = 3

[[engine]]
name = "stub"
url = "ws://127.0.0.1:1"
`

test('a setting is added to a section that the file has, and to one that it does not have', () => {
  const toml = withSettings(file, ['speech.resume_chars_max=1024', 'limits.body_bytes_max=9'])
  expect(Bun.TOML.parse(toml)).toMatchObject({
    speech: { sessions_per_user_max: 3, resume_chars_max: 1024 },
    limits: { body_bytes_max: 9 },
  })
})

test('a setting stands before what the file says, in an entry of a list too', () => {
  const toml = withSettings(file, ['speech.sessions_per_user_max=5', 'engine.0.name=other'])
  expect(Bun.TOML.parse(toml)).toMatchObject({
    speech: { sessions_per_user_max: 5 },
    engine: [{ name: 'other', url: 'ws://127.0.0.1:1' }],
  })
})

test('a value is a number, a truth value or a list where it reads as one, and a text otherwise', () => {
  const toml = withSettings('', ['a.n=1', 'a.b=true', 'a.l=["x"]', 'a.t=info', 'a.e=x=y "z"'])
  expect(Bun.TOML.parse(toml)).toEqual({
    a: { n: 1, b: true, l: ['x'], t: 'info', e: 'x=y "z"' },
  })
})

test('what is no key with a value is refused before anything starts', () => {
  expect(() => readSettings(['speech'])).toThrow('--set is a key of the configuration')
})
