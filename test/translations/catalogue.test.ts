import { describe, expect, test } from 'bun:test'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  errorOf,
  outcome,
  startPortalGateway,
  usePortalGateway,
} from '#test/support/portal-gateway.ts'

const catalogue = writeCatalogue({
  en: {
    common: {
      save: 'Save',
      hello: 'Hello {{name}}, you have {count} messages',
      rich: 'Read <b>this</b><br/> and <0>that</0>',
      plural: '{count, plural, one {# file} other {# files of {owner}}}',
    },
  },
  de: { common: { save: 'Sichern', formatted: 'Seit {{ date, short }} {{- raw}}' } },
})

function writeCatalogue(texts: unknown): string {
  const path = join(mkdtempSync(join(tmpdir(), 'sluice-catalogue-')), 'catalogue.json')
  writeFileSync(path, JSON.stringify(texts))
  return path
}

const fixture = usePortalGateway({ translations: { catalogue } })
const send: typeof fixture.gateway.send = (...args) => fixture.gateway.send(...args)
const patch = (common: object, where = 'de') =>
  send('admins', `PATCH /v1/translations/${where}`, { json: { common } })

describe('a text with the placeholders and tags of the original is accepted', () => {
  const accepted: [object, string][] = [
    [{ save: 'Speichern' }, 'de'],
    [{ hello: '{count} Nachrichten für {{ name }}' }, 'de'],
    [{ hello: '{{count}} Nachrichten für {name}' }, 'de-AT'],
    [{ rich: '<0>Das</0> und <b class="x">dies</b><br>' }, 'fr'],
    [{ plural: '{count, plural, one {# Datei} few {x} other {# Dateien}}' }, 'de'],
    [{ formatted: '{{raw}} {{date}}' }, 'de'],
    [{ formatted: '{{raw}} {{date}}' }, 'el'],
    [{ unknown: 'of {anything}' }, 'de'],
    [{ constructors: 'x', valueOf: '{x}' }, 'de'],
    [{ hello: null }, 'de'],
  ]
  test.each(accepted)('%j in %s', async (common, language) => {
    expect(outcome(await patch(common, language))).toBe('200')
  })
})

describe('a text with other placeholders or tags is refused unless forced', () => {
  const refused: [string, string, string][] = [
    ['hello', 'Hallo {{name}}', '{count}'],
    ['hello', 'Hallo {{name}} {count} {{token}}', '{token}'],
    ['hello', 'Hallo {{nmae}} {count}', '{name}'],
    ['save', 'Speichern {{now}}', '{now}'],
    ['rich', '<b>dies</b><br/> und das', '<0>'],
    ['rich', '<b>dies<br/> und <0>das</0>', '</b>'],
    ['rich', '<b>dies</b><br/> <0>das</0> <script>x</script>', '<script>'],
    ['plural', '{number, plural, other {# Dateien}}', '{count}'],
    ['formatted', '{{date}}', '{raw}'],
  ]
  test.each(refused)('%s: %s', async (key, text, placeholder) => {
    const refusal = await patch({ [key]: text })
    expect(errorOf(refusal)).toEqual([422, 'placeholder_mismatch', `common.${key}`])
    expect(Object(refusal.body['error']).message).toContain(placeholder)
    expect(errorOf(await patch({ [key]: text }, 'fr?force=false'))[1]).toBe('placeholder_mismatch')
    expect(outcome(await patch({ [key]: text }, 'fr?force=true'))).toBe('200')
  })
})

test("administrators read the portal's own texts, of one language or all", async () => {
  const { body: all } = await send('admins', 'GET /v1/translations/catalogue')
  expect(Object.keys(all)).toEqual(['en', 'de'])
  const { body: one } = await send('admins', 'GET /v1/translations/catalogue?language=de')
  expect(one).toEqual({
    de: { common: { save: 'Sichern', formatted: 'Seit {{ date, short }} {{- raw}}' } },
  })
  expect((await send('admins', 'GET /v1/translations/catalogue?language=fr')).body).toEqual({})
})

test('the status lists unused keys and mismatched placeholders', async () => {
  await send('admins', 'POST /v1/translations/reset')
  await patch({ save: 'Speichern', gone: 'x', hello: 'Hallo {{nmae}} {count}' }, 'de?force=true')
  await patch({ save: 'Enregistrer' }, 'fr')
  const { body } = await send('admins', 'GET /v1/translations/status')
  expect(body).toEqual({
    catalogue: true,
    languages: [
      { language: 'de', texts: 3, supported: true, ...lastChange(body, 0) },
      { language: 'fr', texts: 1, supported: true, ...lastChange(body, 1) },
    ],
    findings: [
      { language: 'de', namespace: 'common', key: 'gone', problem: 'key_vanished' },
      {
        language: 'de',
        namespace: 'common',
        key: 'hello',
        problem: 'placeholder_mismatch',
        missing: ['{name}'],
        unexpected: ['{nmae}'],
      },
    ],
    has_more: false,
  })
})

test('the status lists at most 1,000 findings and sets has_more', async () => {
  const gone = Object.fromEntries(
    Array.from({ length: 1_001 }, (_, index) => [`gone ${index}`, 'x']),
  )
  await patch(gone, 'el')
  const { body } = await send('admins', 'GET /v1/translations/status')
  expect(body['has_more']).toBe(true)
  expect(body['findings']).toBeArrayOfSize(1_000)
})

test('without a catalogue nothing is checked', async () => {
  const unchecked = await startPortalGateway(fixture.database, {
    translations: { languages: ['fr'] },
  })
  const json = { common: { save: '{anything} <b>' } }
  expect(outcome(await unchecked.send('admins', 'PATCH /v1/translations/fr', { json }))).toBe('200')
  const { body } = await unchecked.send('admins', 'GET /v1/translations/status')
  expect([body['catalogue'], body['findings']]).toEqual([false, []])
  const supported = Object(body['languages']).map((one: Record<string, unknown>) => [
    one['language'],
    one['supported'],
  ])
  expect(supported).toContainEqual(['de', false])
  expect(supported).toContainEqual(['fr', true])
  await unchecked.stop()
})

function lastChange(body: Record<string, unknown>, index: number) {
  const { updated_at, updated_by } = Object(body['languages'])[index]
  expect(Date.parse(updated_at)).toBeGreaterThan(Date.now() - 60_000)
  expect(updated_by).toMatch(/^[0-9a-f-]{36}$/)
  return { updated_at, updated_by }
}
