import { describe, expect, test } from 'bun:test'
import { errorOf, outcome, usePortalGateway } from '#test/support/portal-gateway.ts'

const fixture = usePortalGateway({ translations: { languages: ['de', 'fr', 'PT-br'] } })
const send: typeof fixture.gateway.send = (...args) => fixture.gateway.send(...args)
const patch = (json: unknown, language = 'de') =>
  send('admins', `PATCH /v1/translations/${language}`, { json })
const readAll = async () => (await send('users', 'GET /v1/translations')).body

describe('a language', () => {
  const invalidTags = [
    'd',
    'de_DE',
    'deutsch!',
    '__proto__',
    'constructor',
    'prototype',
    'de-',
    '%00',
  ]
  test.each([...invalidTags, 'de-'.repeat(30), 'x-private', '%E2%82%AC'])(
    '%s is invalid',
    async (tag) => {
      const refusal = [422, 'invalid_language', 'language']
      expect(errorOf(await patch({ a: { x: '1' } }, tag))).toEqual(refusal)
      expect(errorOf(await send('users', `GET /v1/translations?language=${tag}`))).toEqual(refusal)
      const json = { language: decodeURIComponent(tag) }
      expect(errorOf(await send('admins', 'POST /v1/translations/reset', { json }))).toEqual(
        refusal,
      )
    },
  )

  test('must be configured, in any spelling', async () => {
    expect(errorOf(await patch({ a: { x: '1' } }, 'el'))).toEqual([
      422,
      'language_not_supported',
      'language',
    ])
    expect(outcome(await patch({ a: { x: '1' } }, 'de-AT'))).toBe('422 language_not_supported')
    expect(outcome(await patch({ a: { x: '1' } }, 'pt-br'))).toBe('200')
  })
})

describe('a patch', () => {
  test.each(['[]', '"x"', 'null', '7'])('must be an object, not %s', async (text) => {
    expect(outcome(await patch(text))).toBe('422 unprocessable')
  })

  test.each(['{', ' ', '{"a":{}}}'])('must be JSON, not %p', async (text) => {
    expect(outcome(await patch(text))).toBe('400 malformed_json')
  })

  const faults: [unknown, string][] = [
    [{ a: 'x' }, 'a'],
    [{ a: ['x'] }, 'a'],
    [{ a: { x: 1 } }, 'a.x'],
    [{ a: { x: true } }, 'a.x'],
    [{ a: { x: { y: 'z' } } }, 'a.x'],
    [{ a: { x: ['y'] } }, 'a.x'],
    [{ a: { x: 'a\0b' } }, 'a.x'],
    ['{"a":{"x":"half \\ud83d"}}', 'a.x'],
    [{ a: { '': 'x' } }, 'a'],
    [{ a: { 'a\0b': 'x' } }, 'a'],
    [{ a: { 'a\nb': 'x' } }, 'a'],
    ['{"a":{"half \\ud83d":"x"}}', 'a'],
    [{ a: { ['k'.repeat(501)]: 'x' } }, 'a'],
  ]
  test.each(faults)('%j is refused', async (json, param) => {
    expect(errorOf(await patch(json))).toEqual([422, 'unprocessable', param])
  })

  test.each(['', 'n'.repeat(101), 'a\0b'])('the namespace %p is refused', async (namespace) => {
    expect(outcome(await patch({ [namespace]: { x: '1' } }))).toBe('422 unprocessable')
  })

  test('is refused as a whole', async () => {
    const before = await readAll()
    expect(outcome(await patch({ a: { good: 'x', bad: 1 } }))).toBe('422 unprocessable')
    expect(outcome(await patch({ a: { good: 'x' }, b: { constructor: 'x' } }))).toBe(
      '422 forbidden_name',
    )
    expect(await readAll()).toEqual(before)
  })
})

describe('names that could change a prototype', () => {
  const names = ['__proto__', 'constructor', 'prototype']
  const paths = names.flatMap((name) => [name, `a.${name}`, `${name}.polluted`, `a:${name}:b`])
  test.each(paths)('%s is refused as a namespace and as a key', async (name) => {
    const spelled = JSON.stringify(name)
    for (const text of [`{${spelled}:{"x":"1"}}`, `{${spelled}:null}`]) {
      expect(errorOf(await patch(text))).toEqual([422, 'forbidden_name', name])
    }
    for (const text of [`{"a":{${spelled}:"1"}}`, `{"a":{${spelled}:null}}`]) {
      expect(errorOf(await patch(text))).toEqual([422, 'forbidden_name', `a.${name}`])
    }
  })

  test.each(names)('%s is refused at a deeper level too', async (name) => {
    expect(outcome(await patch(`{"a":{"x":{"${name}":{"polluted":"1"}}}}`))).toBe(
      '422 unprocessable',
    )
    expect(Object(Object.prototype).polluted).toBeUndefined()
  })

  test('similar names are accepted', async () => {
    const texts = { constructors: '1', proto: '2', 'a.prototypes': '3', hasOwnProperty: '4' }
    expect((await patch({ a: texts }, 'fr')).body).toEqual({ fr: { a: texts } })
  })
})

describe('the body of a reset', () => {
  const reset = (json: unknown) => send('admins', 'POST /v1/translations/reset', { json })
  test('may have a language and nothing else', async () => {
    expect(errorOf(await reset({ languages: ['de'] }))).toEqual([422, 'unknown_field', 'languages'])
    for (const language of [null, 5, ['de']]) {
      expect(errorOf(await reset({ language }))).toEqual([422, 'unprocessable', 'language'])
    }
    expect(outcome(await reset('[]'))).toBe('422 unprocessable')
    expect(outcome(await reset('{'))).toBe('400 malformed_json')
  })

  test('may name a language that is no longer supported', async () => {
    expect(outcome(await reset({ language: 'el' }))).toBe('200')
  })
})

test('force must be true or false', async () => {
  const response = await send('admins', 'PATCH /v1/translations/de?force=yes', { json: {} })
  expect(errorOf(response)).toEqual([422, 'unprocessable', 'force'])
})
