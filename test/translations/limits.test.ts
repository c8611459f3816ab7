import { expect, test } from 'bun:test'
import { errorOf, outcome, usePortalGateway } from '#test/support/portal-gateway.ts'

const fixture = usePortalGateway()
const send: typeof fixture.gateway.send = (...args) => fixture.gateway.send(...args)
const patch = (json: unknown, language = 'de') =>
  send('admins', `PATCH /v1/translations/${language}`, { json })
const keys = (count: number, from = 0, text = 'x') =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${from + index}`, text]))
const reset = () => send('admins', 'POST /v1/translations/reset')

test('a text may have 4,096 bytes of UTF-8', async () => {
  for (const [text, more] of [
    ['x'.repeat(4_096), 'x'],
    ['ä'.repeat(2_048), 'x'],
    ['📏'.repeat(1_024), 'x'],
  ]) {
    expect(outcome(await patch({ a: { x: text } }))).toBe('200')
    expect(errorOf(await patch({ a: { x: `${text}${more}` } }))).toEqual([
      422,
      'text_too_long',
      'a.x',
    ])
  }
})

test('a namespace may have 100 characters, a key 500', async () => {
  expect(outcome(await patch({ ['n'.repeat(100)]: { ['k'.repeat(500)]: 'x' } }))).toBe('200')
})

test('a body may have 1 MiB', async () => {
  const padded = (bytes: number) => `${' '.repeat(bytes - 2)}{}`
  expect(outcome(await patch(padded(1_048_576)))).toBe('200')
  expect(outcome(await patch(padded(1_048_577)))).toBe('413 request_too_large')
})

test('a language may have 10,000 texts', async () => {
  await reset()
  expect(outcome(await patch({ a: keys(6_000), b: keys(4_000) }))).toBe('200')
  expect(outcome(await patch({ c: { x: '1' } }))).toBe('422 too_many_keys')
  expect(outcome(await patch({ a: { k0: null }, c: { x: '1' } }))).toBe('200')
  expect(outcome(await patch({ c: { x: '2' } }))).toBe('200')
  expect(outcome(await patch({ c: { x: '1' } }, 'fr'))).toBe('200')
})

test('there may be 200 languages', async () => {
  await reset()
  const letters = 'abcdefghijklmnopqrst'
  const tags = [...letters].flatMap((one) => [...letters].map((two) => `q${one}${two}`))
  for (const tag of tags.slice(0, 200)) {
    expect(outcome(await patch({ a: { x: '1' } }, tag))).toBe('200')
  }
  expect(outcome(await patch({ a: { x: '1' } }, 'en'))).toBe('422 too_many_languages')
  expect(outcome(await patch({ a: { x: '2' } }, tags[0]))).toBe('200')
  expect(outcome(await patch({ a: null }, tags[0]))).toBe('200')
  expect(outcome(await patch({ a: { x: '1' } }, 'en'))).toBe('200')
})

test('all texts together may have 16 MiB, and one response returns them', async () => {
  await reset()
  const text = 'x'.repeat(4_000)
  const outcomes: string[] = []
  for (let round = 0; round < 18; round++) {
    outcomes.push(
      outcome(await patch({ a: keys(250, round * 250, text) }, round % 2 ? 'de' : 'fr')),
    )
  }
  expect(outcomes).toEqual([...Array(16).fill('200'), ...Array(2).fill('422 too_much_text')])
  const { status, text: json } = await send('users', 'GET /v1/translations')
  expect(status).toBe(200)
  expect(Object.keys(JSON.parse(json).de.a).length).toBe(2_000)
})
